"""Bugs that the tests of snippets/hopper/gluon_specialised.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, NOT_CAUSAL, PRODUCER, RESCALED

MUTANTS = [
    *LAUNCH,
    *PRODUCER,
    NOT_CAUSAL,
    Mutant(
        "BLOCK_N * BLOCK_N, seq_k)", "BLOCK_N * BLOCK_N, seq_k + 1)", "a key too many"
    ),
    RESCALED,
    Mutant(
        "    mbarrier.wait(full.index(n % PLACES), n // PLACES & 1)\n",
        "",
        "a tile is not waited for",
    ),
    Mutant(
        "two = (batch, head, start_m + 64, tiles)",
        "two = at",
        "one consumer's rows twice",
    ),
    Mutant("q.index(1), q_full.index(1)", "q.index(0), q_full.index(0)", "one Q"),
    # Barriers.
    Mutant(
        "barriers(PLACES, 2)",
        "barriers(PLACES, 1)",
        "a place reused when one consumer has left",
        may_hang=True,
    ),
    Mutant(
        "        mbarrier.arrive(empty.index(2 * i % PLACES))\n        if LAST_KEYS:",
        "        if LAST_KEYS:",
        "nobody says that K was read",
        may_hang=True,
    ),
    Mutant(
        "mbarrier.wait(empty.index(n % PLACES), (n // PLACES & 1) ^ 1)",
        "mbarrier.wait(empty.index(n % PLACES), n // PLACES & 1)",
        "the producer waits for the wrong phase",
        may_hang=True,
    ),
    Mutant(
        "    mbarrier.wait(empty.index(n % PLACES), (n // PLACES & 1) ^ 1)\n",
        "",
        "a place reused at once",
        may_hang=True,
    ),
]
