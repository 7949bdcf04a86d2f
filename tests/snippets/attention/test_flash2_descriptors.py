"""Tests of snippets/attention/flash2_descriptors.py."""

from snippets.attention import flash2_descriptors
from tests.snippets.attention.tuning import DescriptorTests, TuningTests, with_blocks


class TestFlash2Descriptors(DescriptorTests):
    function = staticmethod(with_blocks(flash2_descriptors))


class TestTuning(TuningTests):
    module = flash2_descriptors
