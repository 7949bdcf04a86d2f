"""Bugs that the tests of snippets/softmax/wrong_tail.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("+ offs, mask).to", "+ offs, mask, other=-1e6).to", "right"),
    Mutant("tl.exp(x - m_i)", "tl.exp(x)", "wrong in another way: no maximum"),
    Mutant("y = numerator / l_i", "y = numerator", "wrong in another way: no division"),
    Mutant("offs < cols", "offs <= cols", "wrong in another way: reads past the row"),
]
