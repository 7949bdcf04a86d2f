"""Bugs that the tests of snippets/attention/wrong_small_block.py must catch."""

from tests.mutants import Mutant

BOUNDS = "full, last = start_m, start_m + BLOCK_M"

MUTANTS = [
    Mutant(
        BOUNDS, BOUNDS.replace("start_m,", "start_m // BLOCK_N * BLOCK_N,"), "right"
    ),
    Mutant(
        BOUNDS,
        BOUNDS.replace("start_m + BLOCK_M", "start_m + 1"),
        "wrong in another way: the band ends early",
    ),
    Mutant("<= offs_m", "< offs_m", "wrong in another way: not its own key"),
    Mutant(") * scale\n", ")\n", "wrong in another way: no scale"),
]
