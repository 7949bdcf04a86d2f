"""Bugs that the tests of snippets/hopper/gluon_causal.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, PRODUCER, RESCALED

MUTANTS = [
    *LAUNCH,
    *PRODUCER,
    Mutant("offs_n[None, :] < seq_k", "offs_n[None, :] <= seq_k", "a key too many"),
    Mutant("offs_m[:, None] + seq_k - seq_q", "offs_m[:, None]", "aligned top left"),
    Mutant("band = gl.maximum(tiles - whole // BLOCK_N, 1)", "band = 1", "no band"),
    Mutant(
        "block + 1 + seq_k - seq_q", "block + 64 + seq_k - seq_q", "a band too thin"
    ),
    Mutant("block + 64 * CONSUMERS + seq_k", "block + seq_k", "the diagonal left out"),
    Mutant(
        "seq_q, start_m = o_desc.shape[2], block + 64 * W",
        "seq_q, start_m = o_desc.shape[2], block",
        "one consumer's rows for all",
    ),
    Mutant(
        "    if tiles > 0:", "    if True:", "tiles that nobody loads", may_hang=True
    ),
    RESCALED,
    Mutant(
        "go.index((W + 1) % go.shape[0])",
        "go.index(W)",
        "nobody else's turn",
        may_hang=True,
    ),
    Mutant("(i - 1) & 1", "i & 1", "the wrong phase of a turn", may_hang=True),
    Mutant(
        "if q.shape[3] <= 64 else 2",
        "if q.shape[3] <= 64 else 3",
        "three consumers where two have room",
        may_not_compile=True,
    ),
]
