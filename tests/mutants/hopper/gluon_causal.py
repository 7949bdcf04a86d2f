"""Bugs that the tests of snippets/hopper/gluon_causal.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, RESCALED
from tests.mutants.hopper.late import too_early

MUTANTS = [
    *LAUNCH,
    Mutant("gl.full([64], seq_k,", "gl.full([64], seq_k + 1,", "a key too many"),
    Mutant("8 * a[None, :]", "a[None, :]", "columns counted in eights"),
    Mutant(
        "(ends - b[None, :])[:, None, :]",
        "ends[:, None, :]",
        "eight keys are seen or none",
    ),
    Mutant("offs_m + 1 + seq_k - seq_q", "offs_m + 1", "aligned top left"),
    Mutant("band = gl.maximum(tiles - whole // BLOCK_N, 1)", "band = 1", "no band"),
    Mutant(
        "block + 1 + seq_k - seq_q", "block + 64 + seq_k - seq_q", "a band too thin"
    ),
    Mutant("block + 64 * CONSUMERS + seq_k", "block + seq_k", "the diagonal left out"),
    Mutant(
        "o_desc, lse_ptr, batch, head, block + 64 * W)",
        "o_desc, lse_ptr, batch, head, block)",
        "one consumer's rows for all",
    ),
    Mutant(
        ", 1)  # at least one",
        ", 0)  # at least one",
        "no tile for a block that sees nothing",
        may_hang=True,
    ),
    Mutant("block + 64 * W + gl.arange", "block + gl.arange", "one consumer's mask"),
    Mutant("(end - 1 - i) * BLOCK_N", "(end - i) * BLOCK_N", "the mask a tile too far"),
    Mutant(
        "take_stage(rings, full, end)",
        "take_stage(rings, full, end - 1)",
        "the last sum with another V",
        may_hang=True,
    ),
    too_early("gluon_causal.py"),
    RESCALED,
    Mutant(
        "[line:next]\n        mbarrier.arrive(go.index((W + 1) % go.shape[0]))",
        "[line:next]\n        mbarrier.arrive(go.index(W))",
        "nobody else's turn",
        may_hang=True,
    ),
    Mutant(
        "(W), i & 1)", "(W), (i + 1) & 1)", "the wrong phase of a turn", may_hang=True
    ),
    Mutant(
        "if q.shape[3] <= 64 else 2",
        "if q.shape[3] <= 64 else 3",
        "three consumers where two have room",
        may_not_compile=True,
    ),
]
