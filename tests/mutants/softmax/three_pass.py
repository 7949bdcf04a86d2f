"""Bugs that the tests of snippets/softmax/three_pass.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import (
    LAUNCH_MUTANTS,
    STORE_MUTANTS,
    load_mutants,
    loop_mutants,
)

MUTANTS = [
    *load_mutants(3),
    *STORE_MUTANTS,
    *LAUNCH_MUTANTS,
    *loop_mutants(3),
    Mutant(
        "m_i = tl.maximum(m_i, tl.max(x, axis=0))",
        "m_i = tl.max(x, axis=0)",
        "the maximum of the last tile only",
    ),
    Mutant(
        'm_i = tl.full((), float("-inf"), COMPUTE)',
        "m_i = tl.full((), 0.0, COMPUTE)",
        "a maximum that starts at 0",
    ),
    Mutant(
        "l_i = tl.full((), 0.0, COMPUTE)",
        "l_i = tl.full((), 1.0, COMPUTE)",
        "a sum that starts at 1",
    ),
    Mutant(
        "l_i = l_i + tl.sum(tl.exp(x - m_i), axis=0)",
        "l_i = tl.sum(tl.exp(x - m_i), axis=0)",
        "the sum of the last tile only",
    ),
    Mutant("tl.sum(tl.exp(x - m_i)", "tl.sum(tl.exp(x)", "a sum without the maximum"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(m_i - x) / l_i", "a wrong sign"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
