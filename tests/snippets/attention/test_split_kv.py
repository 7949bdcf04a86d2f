"""Tests of snippets/attention/split_kv.py."""

from snippets.attention import split_kv
from tests.snippets.attention.splits import SplitTests


class TestSplitKv(SplitTests):
    function = staticmethod(split_kv.attention)
