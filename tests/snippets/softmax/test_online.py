"""Tests of snippets/softmax/online.py."""

from snippets.softmax import online
from tests.snippets.softmax.suite import SoftmaxTests


class TestOnline(SoftmaxTests):
    function = staticmethod(online.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})
