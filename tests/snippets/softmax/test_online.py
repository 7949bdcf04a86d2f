"""Tests of snippets/softmax/online.py."""

from snippets.softmax import online
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    LAUNCH_MUTATIONS,
    ONLINE_MUTATIONS,
    STORE_MUTATIONS,
    SoftmaxTests,
    load_mutations,
    loop_mutations,
)


class TestOnline(SoftmaxTests):
    softmax = staticmethod(online.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})


MUTATIONS = [
    *load_mutations(2),
    *STORE_MUTATIONS,
    *LAUNCH_MUTATIONS,
    *loop_mutations(2),
    *ONLINE_MUTATIONS,
    Mutation(
        "m_new = tl.maximum(m_i, tl.max(x, axis=0))",
        "m_new = tl.max(x, axis=0)",
        "the maximum of the last tile only",
    ),
    Mutation(
        'm_i = tl.full((), float("-inf"), COMPUTE)',
        "m_i = tl.full((), 0.0, COMPUTE)",
        "a maximum that starts at 0",
    ),
    Mutation(
        "tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"
    ),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(m_i - x) / l_i", "a wrong sign"),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
