"""Tests of snippets/attention/flash2_tuned.py."""

from snippets.attention import flash2_tuned
from tests.snippets.attention.tuning import TunedTests, TuningTests, with_blocks


class TestFlash2Tuned(TunedTests):
    function = staticmethod(with_blocks(flash2_tuned))


class TestTuning(TuningTests):
    module = flash2_tuned
