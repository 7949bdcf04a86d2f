"""Bugs that the tests of snippets/softmax/one_row.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import LAUNCH_MUTANTS, STORE_MUTANTS, load_mutants

MUTANTS = [
    *load_mutants(1),
    *STORE_MUTANTS,
    *LAUNCH_MUTANTS,
    Mutant(
        "tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "tl.arange(0, BLOCK_COLS)",
        "column offsets in 32 bits",
    ),
    Mutant("mask = offs < cols", "mask = offs <= cols", "a mask that is one too long"),
    Mutant(
        "mask = offs < cols", "mask = offs < BLOCK_COLS", "a mask that is always true"
    ),
    Mutant("tl.exp(x - m_i)", "tl.exp(x)", "no maximum subtracted"),
    Mutant("tl.exp(x - m_i)", "tl.exp(m_i - x)", "a wrong sign"),
    Mutant("y = numerator / l_i", "y = numerator", "no division"),
    Mutant("tl.max(x, axis=0)", "tl.min(x, axis=0)", "the minimum for the maximum"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65535", "the longest row refused"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65537", "a row too long accepted"),
]
