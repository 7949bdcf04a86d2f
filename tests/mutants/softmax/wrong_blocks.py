"""Bugs that the tests of snippets/softmax/wrong_blocks.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("(tl.float32) - m_i)", "(tl.float32))", "wrong in another way: no maximum"),
    Mutant("y = numerator / l_i", "y = numerator", "wrong in another way: no division"),
    Mutant(', other=float("-inf")', "", "wrong in another way: no other"),
    Mutant(
        "range(0, cols, BLOCK_COLS)",
        "range(0, BLOCK_COLS, BLOCK_COLS)",
        "wrong in another way: one tile only",
    ),
]
