"""Tests of snippets/softmax/three_pass.py."""

from snippets.softmax import three_pass
from tests.snippets.softmax.suite import SoftmaxTests


class TestThreePass(SoftmaxTests):
    function = staticmethod(three_pass.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})
