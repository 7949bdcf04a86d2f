"""Tests of snippets/softmax/split_row.py."""

import pytest
import torch

from snippets.softmax import split_row
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.snippets.softmax.suite import (
    SoftmaxTests,
    baseline,
    reference,
    row_sum_bound,
)


class TestSplitRow(SoftmaxTests):
    function = staticmethod(split_row.softmax)
    blocks = (
        {"chunks": 3, "block_cols": 32},
        {"chunks": 1, "block_cols": 64},
        {"chunks": 8, "block_cols": 16},
        {"chunks": 40, "block_cols": 64},
        {},
    )
    block = 32

    @pytest.mark.parametrize("cols", [1, 5, 7, 8, 9])
    def test_chunks_without_columns(self, cols: int, device: str) -> None:
        x = normal((2, cols), torch.float32, device)
        y = split_row.softmax(x, chunks=8, block_cols=4)
        check_accuracy(y, reference(x), baseline(x))

    @pytest.mark.parametrize("chunks", [1, 4, 50])
    def test_a_chunk_of_minus_inf(self, chunks: int, device: str) -> None:
        x = normal((1, 40), torch.float32, device)
        x[:, 10:30] = float("-inf")
        y = split_row.softmax(x, chunks=chunks, block_cols=4)
        check_accuracy(y, reference(x), baseline(x))

    def test_a_sum_beyond_float16(self, device: str) -> None:
        x = torch.zeros((1, 1), dtype=torch.float16, device=device).expand(1, 70_000)
        y = split_row.softmax(x, chunks=1, block_cols=65536)
        check_accuracy(y, reference(x), baseline(x))

    @pytest.mark.gpu
    @pytest.mark.large
    def test_one_row_of_more_than_31_bits(self) -> None:
        x = torch.empty((1, 2**31 + 5), dtype=torch.float16, device="cuda").normal_()
        y = split_row.softmax(x.mul_(30).view(-1, 1).T, chunks=1024, block_cols=4096)
        total = sum(part.sum(dtype=torch.float64) for part in y[0].split(2**28))
        assert abs(total.item() - 1) <= row_sum_bound(torch.float16)
