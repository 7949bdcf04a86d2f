"""Tests of snippets/hopper/gluon_causal.py."""

from snippets.hopper import gluon_causal
from tests.snippets.attention.tuning import DescriptorTests
from tests.snippets.hopper.attention import HopperTests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401


class TestGluonCausal(HopperTests):
    function = staticmethod(gluon_causal.attention)
    causal = True
    refused = DescriptorTests.refused
