"""Tests of snippets/softmax/three_pass.py."""

from snippets.softmax import three_pass
from tests.snippets.softmax.cases import (
    SoftmaxTests,
)


class TestThreePass(SoftmaxTests):
    softmax = staticmethod(three_pass.softmax)
    blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})
