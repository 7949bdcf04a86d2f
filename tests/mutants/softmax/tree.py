"""Bugs that the tests of snippets/softmax/tree.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import (
    LAUNCH_MUTANTS,
    STORE_MUTANTS,
    load_mutants,
    loop_mutants,
)

MUTANTS = [
    *load_mutants(2),
    *STORE_MUTANTS,
    *LAUNCH_MUTANTS,
    *loop_mutants(2),
    Mutant(
        'shift = tl.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = m_i",
        "a merge without a guard for two identities",
    ),
    Mutant("l_a * tl.exp(m_a - shift)", "l_a", "the left part is not rescaled"),
    Mutant("l_b * tl.exp(m_b - shift)", "l_b", "the right part is not rescaled"),
    Mutant(
        "l_b * tl.exp(m_b - shift)",
        "l_b * tl.exp(shift - m_b)",
        "the right part is rescaled the wrong way",
    ),
    Mutant("tl.maximum(m_a, m_b)", "m_b", "the maximum of the right part only"),
    Mutant(
        'm_i = tl.full((BLOCK_COLS,), float("-inf"), COMPUTE)',
        "m_i = tl.full((BLOCK_COLS,), 0.0, COMPUTE)",
        "a maximum that starts at 0",
    ),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
