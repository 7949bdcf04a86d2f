"""Tests of snippets/softmax/three_pass.py."""

from snippets.softmax import three_pass
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    LAUNCH_MUTATIONS,
    STORE_MUTATIONS,
    SoftmaxTests,
    load_mutations,
    loop_mutations,
)


class TestThreePass(SoftmaxTests):
    softmax = staticmethod(three_pass.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})


MUTATIONS = [
    *load_mutations(3),
    *STORE_MUTATIONS,
    *LAUNCH_MUTATIONS,
    *loop_mutations(3),
    Mutation(
        "m_i = tl.maximum(m_i, tl.max(x, axis=0))",
        "m_i = tl.max(x, axis=0)",
        "the maximum of the last tile only",
    ),
    Mutation(
        'm_i = tl.full((), float("-inf"), COMPUTE)',
        "m_i = tl.full((), 0.0, COMPUTE)",
        "a maximum that starts at 0",
    ),
    Mutation(
        "l_i = tl.full((), 0.0, COMPUTE)",
        "l_i = tl.full((), 1.0, COMPUTE)",
        "a sum that starts at 1",
    ),
    Mutation(
        "l_i = l_i + tl.sum(tl.exp(x - m_i), axis=0)",
        "l_i = tl.sum(tl.exp(x - m_i), axis=0)",
        "the sum of the last tile only",
    ),
    Mutation("tl.sum(tl.exp(x - m_i)", "tl.sum(tl.exp(x)", "a sum without the maximum"),
    Mutation(
        "tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"
    ),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(m_i - x) / l_i", "a wrong sign"),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
