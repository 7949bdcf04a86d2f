"""Bugs that the tests of snippets/hopper/gluon_overlapped.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, NOT_CAUSAL, RESCALED
from tests.mutants.hopper.late import too_early

MUTANTS = [
    *LAUNCH,
    NOT_CAUSAL,
    Mutant("BLOCK_N, seq_k)", "BLOCK_N, seq_k + 1)", "a key too many"),
    RESCALED,
    Mutant(
        "two = (batch, head, start_m + 64, tiles)",
        "two = at",
        "one consumer's rows twice",
    ),
    Mutant("range(2, 2 * tiles, 2)", "range(2, 2 * tiles - 2, 2)", "a tile too few"),
    Mutant(
        "take(ring, full, 2 * tiles - 1)",
        "take(ring, full, 2 * tiles - 2)",
        "the last sum with K",
        may_hang=True,
    ),
    Mutant(
        "take(ring, full, n - 1), acc",
        "ring.index((n - 1) % PLACES).reshape([BLOCK_N, BLOCK_D]), acc",
        "V is not waited for",
    ),
    too_early("gluon_overlapped.py", "n - 1"),
]
