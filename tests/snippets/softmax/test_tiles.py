"""Tests of snippets/softmax/tiles.py."""

import pytest
import torch

from snippets.softmax import tiles
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    LAUNCH_MUTATIONS,
    ONLINE_MUTATIONS,
    SoftmaxTests,
)


class TestTiles(SoftmaxTests):
    softmax = staticmethod(tiles.softmax)
    blocks = (
        {"block_rows": 4, "block_cols": 64},
        {"block_rows": 1, "block_cols": 16},
        {"block_rows": 16, "block_cols": 32},
        {"block_rows": 2, "block_cols": 512},
        {},
    )

    def test_refuses_a_tile_that_is_too_large(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"^block_rows .* block_cols is 131072;"):
            tiles.softmax(
                torch.zeros((2, 3), device=device), block_rows=512, block_cols=256
            )


EVERY, MASK = (
    "range(0, cols, BLOCK_COLS)",
    "mask = (offs_r < rows) & (start + offs_c < cols)",
)
ROW, MINUS_INF = "offs_r * stride_xr", 'other=float("-inf"),'
MUTATIONS = [
    *LAUNCH_MUTATIONS,
    *ONLINE_MUTATIONS,
    Mutation(MINUS_INF, "", "a tail load without other", 2),
    Mutation(MINUS_INF, "other=0.0,", "a tail load of 0", 2),
    Mutation(MINUS_INF, "other=-1e6,", "a mask that is not -inf", 2),
    Mutation(ROW, "offs_r * cols", "x read as if it were contiguous", 2),
    Mutation(" * stride_xc", "", "the column stride of x ignored", 2),
    Mutation("tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "32-bit row offsets"),
    Mutation("offs_r * stride_yr", ROW, "y written with x's row stride"),
    Mutation(" * stride_yc", " * stride_xc", "y written with x's column stride"),
    Mutation("stride_yc, y, mask)", "stride_yc, y)", "a store without a mask"),
    Mutation(
        EVERY,
        "range(0, cols // BLOCK_COLS * BLOCK_COLS, BLOCK_COLS)",
        "the last columns dropped",
        2,
    ),
    Mutation(MASK, "mask = start + offs_c < cols", "no mask over the rows", 2),
    Mutation(MASK, "mask = offs_r < rows", "no mask over the columns", 2),
    Mutation(
        "triton.cdiv(rows, block_rows)", "rows // block_rows", "the last rows dropped"
    ),
    Mutation(
        "tl.maximum(m_i, tl.max(x, axis=1, keep_dims=True))",
        "tl.max(x, axis=1, keep_dims=True)",
        "the maximum of the last tile only",
    ),
    Mutation(
        "tl.max(x, axis=1, keep_dims=True)",
        "tl.max(tl.max(x, axis=1), axis=0)",
        "one maximum for all rows of the tile",
    ),
    Mutation(
        "tl.sum(tl.exp(x - shift), axis=1, keep_dims=True)",
        "tl.sum(tl.sum(tl.exp(x - shift), axis=1), axis=0)",
        "one sum for all rows of the tile",
    ),
    Mutation(
        "tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"
    ),
    Mutation("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
    Mutation("block_rows * block_cols > 65536", "False", "a tile that is too large"),
]
