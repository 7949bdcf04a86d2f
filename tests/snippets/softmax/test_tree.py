"""Tests of snippets/softmax/tree.py."""

from snippets.softmax import tree
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    LAUNCH_MUTATIONS,
    STORE_MUTATIONS,
    SoftmaxTests,
    load_mutations,
    loop_mutations,
)


class TestTree(SoftmaxTests):
    softmax = staticmethod(tree.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})


MUTATIONS = [
    *load_mutations(2),
    *STORE_MUTATIONS,
    *LAUNCH_MUTATIONS,
    *loop_mutations(2),
    Mutation(
        'shift = tl.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = m_i",
        "a merge without a guard for two identities",
    ),
    Mutation("l_a * tl.exp(m_a - shift)", "l_a", "the left part is not rescaled"),
    Mutation("l_b * tl.exp(m_b - shift)", "l_b", "the right part is not rescaled"),
    Mutation(
        "l_b * tl.exp(m_b - shift)",
        "l_b * tl.exp(shift - m_b)",
        "the right part is rescaled the wrong way",
    ),
    Mutation("tl.maximum(m_a, m_b)", "m_b", "the maximum of the right part only"),
    Mutation(
        'm_i = tl.full((BLOCK_COLS,), float("-inf"), COMPUTE)',
        "m_i = tl.full((BLOCK_COLS,), 0.0, COMPUTE)",
        "a maximum that starts at 0",
    ),
    Mutation(
        "tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"
    ),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
