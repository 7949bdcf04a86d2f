"""Tests of snippets/softmax/tiles.py."""

import pytest
import torch

from snippets.softmax import tiles
from tests.snippets.softmax.suite import SoftmaxTests


class TestTiles(SoftmaxTests):
    function = staticmethod(tiles.softmax)
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
