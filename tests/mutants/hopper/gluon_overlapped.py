"""Bugs that the tests of snippets/hopper/gluon_overlapped.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import HEADS_OF_KEYS, LAUNCH, NOT_CAUSAL, RESCALED
from tests.mutants.hopper.late import too_early

MUTANTS = [
    *LAUNCH,
    NOT_CAUSAL,
    HEADS_OF_KEYS,
    Mutant("BLOCK_N, seq_k)", "BLOCK_N, seq_k + 1)", "a key too many"),
    RESCALED,
    Mutant(
        "two = (batch, head, start_m + 64, tiles)",
        "two = at",
        "one consumer's rows twice",
    ),
    Mutant("range(1, tiles)", "range(1, tiles - 1)", "a tile too few"),
    # What a stage holds.
    Mutant("(tiles - i) * BLOCK_N", "(tiles - 1 - i) * BLOCK_N", "V of the same tile"),
    Mutant("(v_desc, v_rows, bar", "(k_desc, k_rows, bar", "K in the place of V"),
    Mutant(
        "range(tiles + 1)", "range(tiles)", "the last V is never loaded", may_hang=True
    ),
    Mutant(
        "take_stage(rings, full, tiles)",
        "take_stage(rings, full, tiles - 1)",
        "the last sum with another V",
        may_hang=True,
    ),
    # Barriers.
    Mutant(
        "    mbarrier.wait(full.index(n % STAGES), n // STAGES & 1)\n",
        "",
        "a stage is not waited for",
    ),
    Mutant(
        "nbytes + v_desc.block_type.nbytes",
        "nbytes",
        "V is not waited for",
        may_hang=True,
    ),
    Mutant(
        "barriers(STAGES, 2)",
        "barriers(STAGES, 1)",
        "a stage reused when one consumer has left",
        may_hang=True,
    ),
    Mutant(
        "    mbarrier.arrive(empty.index(0))\n",
        "",
        "nobody says that the first K was read",
        may_hang=True,
    ),
    Mutant(
        "mbarrier.wait(empty.index(n % STAGES), (n // STAGES & 1) ^ 1)",
        "mbarrier.wait(empty.index(n % STAGES), n // STAGES & 1)",
        "the producer waits for the wrong phase",
        may_hang=True,
    ),
    Mutant(
        "    mbarrier.wait(empty.index(n % STAGES), (n // STAGES & 1) ^ 1)\n",
        "",
        "a stage reused at once",
        may_hang=True,
    ),
    too_early("gluon_overlapped.py"),
]
