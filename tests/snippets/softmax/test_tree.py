"""Tests of snippets/softmax/tree.py."""

import torch

from snippets.softmax import tree
from tests.snippets.softmax.suite import SoftmaxTests


class TestTree(SoftmaxTests):
    function = staticmethod(tree.softmax)
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
