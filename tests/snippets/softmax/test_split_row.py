"""Tests of snippets/softmax/split_row.py."""

from collections.abc import Callable

import pytest
import torch

from snippets.softmax import split_row
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    ONLINE_MUTATIONS,
    STORE_MUTATIONS,
    SoftmaxTests,
    baseline,
    normal,
    reference,
    row_sum_bound,
)


class TestSplitRow(SoftmaxTests):
    softmax = staticmethod(split_row.softmax)
    blocks = (
        {"chunks": 3, "block_cols": 32},
        {"chunks": 1, "block_cols": 64},
        {"chunks": 8, "block_cols": 16},
        {"chunks": 40, "block_cols": 64},
        {},
    )
    block = 32

    @pytest.mark.parametrize("cols", [1, 5, 7, 8, 9])
    def test_chunks_without_columns(
        self, cols: int, device: str, check_accuracy: Callable
    ) -> None:
        x = normal(2, cols, torch.float32, device)
        y = split_row.softmax(x, chunks=8, block_cols=4)
        check_accuracy(y, reference(x), baseline(x))

    @pytest.mark.parametrize("chunks", [1, 4, 50])
    def test_a_chunk_of_minus_inf(
        self, chunks: int, device: str, check_accuracy: Callable
    ) -> None:
        x = normal(1, 40, torch.float32, device)
        x[:, 10:30] = float("-inf")
        y = split_row.softmax(x, chunks=chunks, block_cols=4)
        check_accuracy(y, reference(x), baseline(x))

    def test_a_sum_beyond_float16(self, device: str, check_accuracy: Callable) -> None:
        x = torch.zeros((1, 1), dtype=torch.float16, device=device).expand(1, 70_000)
        y = split_row.softmax(x, chunks=1, block_cols=65536)
        check_accuracy(y, reference(x), baseline(x))

    @pytest.mark.parametrize("bad", [1025, 1.5])
    def test_refuses_other_numbers_of_chunks(self, bad: float, device: str) -> None:
        with pytest.raises(ValueError, match=f"^chunks is {bad}; it must be from 1"):
            split_row.softmax(torch.zeros((2, 3), device=device), chunks=bad)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_one_row_of_more_than_31_bits(self) -> None:
        x = torch.empty((1, 2**31 + 5), dtype=torch.float16, device="cuda").normal_()
        y = split_row.softmax(x.mul_(30).view(-1, 1).T, chunks=1024, block_cols=4096)
        total = sum(part.sum(dtype=torch.float64) for part in y[0].split(2**28))
        assert abs(total.item() - 1) <= row_sum_bound(torch.float16)


EVERY, MASK = "range(first, last, BLOCK_COLS)", "mask = start + offs < last"
ROW, MINUS_INF = "row * stride_xr", '            other=float("-inf"),\n'
MUTATIONS = [
    *STORE_MUTATIONS,
    *ONLINE_MUTATIONS,
    Mutation(MINUS_INF, "", "a tail load without other", 2),
    Mutation(MINUS_INF, "other=0.0,\n", "a tail load of 0", 2),
    Mutation(ROW, "row * cols", "x read as if it were contiguous", 2),
    Mutation(" * stride_xc", "", "the column stride of x ignored", 2),
    Mutation("tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "32-bit rows", 2),
    Mutation(EVERY, "range(first, first + BLOCK_COLS, BLOCK_COLS)", "one tile only", 2),
    Mutation(
        MASK, "mask = start + offs < cols", "a tile that enters the next chunk", 2
    ),
    Mutation(
        "tl.minimum(first + chunk_cols, cols)",
        "first + chunk_cols",
        "a last chunk that ends past the row",
        2,
    ),
    Mutation("triton.cdiv(cols, chunks)", "cols // chunks", "the last columns dropped"),
    Mutation(
        "m_new = tl.maximum(m_i, tl.max(x, axis=0))",
        "m_new = tl.max(x, axis=0)",
        "the maximum of the last tile only",
    ),
    Mutation("m_ptr + row * chunks + chunk,", "m_ptr + row + chunk,", "rows share m"),
    Mutation("l_ptr + row * chunks + chunk,", "l_ptr + row + chunk,", "rows share l"),
    Mutation(
        "offs_k < chunks, other=0.0", "offs_k < 8, other=0.0", "a wrong mask of l"
    ),
    Mutation(
        'offs_k < chunks, other=float("-inf")',
        "offs_k < chunks, other=0.0",
        "missing chunks counted as a maximum of 0",
    ),
    Mutation("l_k * tl.exp(m_k - m_i)", "l_k", "the parts are not rescaled"),
    Mutation("l_k * tl.exp(m_k - m_i)", "tl.exp(m_k - m_i)", "the parts' sums dropped"),
    Mutation(
        "m_i = tl.max(m_k, axis=0)", "m_i = tl.min(m_k, axis=0)", "the least maximum"
    ),
    Mutation(
        "tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"
    ),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
    Mutation(
        "chunks not in range(1, 1025)", "chunks < 1", "any number of chunks accepted"
    ),
    Mutation(
        "torch.float64 if double else torch.float32",
        "x.dtype",
        "partial results in the dtype of x",
    ),
    Mutation(
        "tl.float64 if double else tl.float32", "tl.float32", "float64 in float32"
    ),
    Mutation(
        "dtype=x.dtype, device=x.device",
        "dtype=dtype, device=x.device",
        "a y of another dtype",
    ),
]
