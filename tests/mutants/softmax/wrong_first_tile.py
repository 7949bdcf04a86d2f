"""Bugs that the tests of snippets/softmax/wrong_first_tile.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "m_new = tl.maximum(m_i, tl.max(x.to(tl.float32), axis=0))",
        "m_new = tl.maximum(tl.maximum(m_i, tl.max(x.to(tl.float32), axis=0)), -1e6)",
        "right: the maximum is never -inf",
    ),
    Mutant(
        "l_i = l_i * tl.exp(m_i - m_new)",
        "l_i = l_i",
        "wrong in another way: the sum is not rescaled",
    ),
    Mutant("- m_i) / l_i", "- m_i)", "wrong in another way: no division"),
    Mutant(', other=float("-inf")', "", "wrong in another way: no other", 2),
]
