"""Tests of snippets/softmax/tiles.py."""

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
