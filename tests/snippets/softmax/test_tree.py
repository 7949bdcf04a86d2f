"""Tests of snippets/softmax/tree.py."""

import torch

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
    blocks = ({"block_cols": 32}, {"block_cols": 8}, {"block_cols": 128})
    block = 32

    def baseline(self, x: torch.Tensor) -> torch.Tensor:
        """Pairs merged from left to right: the interpreter's order, no better."""
        values = x.double() if x.dtype == torch.float64 else x.float()
        m_i = torch.full_like(values[:, :1], float("-inf"))
        l_i = torch.zeros_like(m_i)
        for value in values.split(1, dim=1):
            m_new = torch.maximum(m_i, value)
            shift = torch.where(m_new == float("-inf"), 0.0, m_new)
            l_i = l_i * torch.exp(m_i - shift) + torch.exp(value - shift)
            m_i = m_new
        return (torch.exp(values - m_i) / l_i).to(x.dtype)


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
