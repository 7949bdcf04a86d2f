"""Tests of snippets/attention/flash2_single_head.py."""

from snippets.attention import flash2_single_head
from tests.snippets.attention.suite import SingleHeadTests


class TestFlash2SingleHead(SingleHeadTests):
    function = staticmethod(flash2_single_head.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 64, "block_n": 16},
        {},
    )
    layout_of_q = True
    most_rows = None
