"""Tests of snippets/attention/flash2_tuned.py."""

from snippets.attention import flash2_tuned
from tests.snippets.attention.suite import AttentionTests
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Tuned(AttentionTests):
    function = staticmethod(with_blocks(flash2_tuned))
    scales = (0.3, 1.0)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )


class TestTuning(TuningTests):
    module = flash2_tuned
