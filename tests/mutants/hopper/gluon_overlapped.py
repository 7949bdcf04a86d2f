"""Bugs that the tests of snippets/hopper/gluon_overlapped.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, NOT_CAUSAL, PRODUCER, RESCALED

MUTANTS = [
    *LAUNCH,
    *PRODUCER,
    NOT_CAUSAL,
    Mutant("offs_n[None, :] < seq_k", "offs_n[None, :] <= seq_k", "a key too many"),
    RESCALED,
    Mutant(
        "two = (batch, head, start_m + 64)", "two = at", "one consumer's rows twice"
    ),
    Mutant("s = warpgroup_mma_wait(1,", "s = warpgroup_mma_wait(2,", "a wait too few"),
    Mutant("range(2, 2 * tiles, 2)", "range(2, 2 * tiles - 2, 2)", "a tile too few"),
    Mutant(
        "n = 2 * tiles - 1", "n = 2 * tiles - 2", "the last sum with K", may_hang=True
    ),
    Mutant(
        "        mbarrier.wait(full.index((n - 1) % PLACES), (n - 1) // PLACES & 1)\n",
        "",
        "V is not waited for",
    ),
]
