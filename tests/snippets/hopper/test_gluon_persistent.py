"""Tests of snippets/hopper/gluon_persistent.py."""

import pytest
import torch

from snippets.hopper import gluon_persistent
from tests.harness.inputs import HALVES, qkv
from tests.snippets.attention.tuning import DescriptorTests
from tests.snippets.hopper.attention import HopperTests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401


class TestGluonPersistent(HopperTests):
    function = staticmethod(gluon_persistent.attention)
    causal = True
    refused = DescriptorTests.refused

    @pytest.mark.parametrize("columns", [40, 64, 128, 256])
    @pytest.mark.parametrize("sizes", [(70, 90), (330, 260), (700, 300)], ids=str)
    def test_programs_take_many_blocks(
        self, sizes: tuple[int, int], columns: int, causal: bool, device: str
    ) -> None:
        # Odd and even numbers of blocks, and causally blocks that see nothing.
        inputs = qkv((7, 60), (7, 20), *sizes, columns, HALVES[1], device)
        first = self.check(*inputs, causal=causal, blocks={})
        for _ in range(20):
            again = self.run(*inputs, causal=causal, blocks={})
            assert all(torch.equal(again[name], x) for name, x in first.items())

    @pytest.mark.parametrize("sizes", [(2049, 1200), (8193, 8300)], ids=str)
    def test_long_sequences_have_three_consumers(
        self, sizes: tuple[int, int], dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        inputs = qkv((1, 2), (1, 1), *sizes, 64, dtype, device)
        self.check(*inputs, causal=causal, blocks={})
