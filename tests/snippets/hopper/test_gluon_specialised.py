"""Tests of snippets/hopper/gluon_specialised.py."""

from snippets.hopper import gluon_specialised
from tests.snippets.hopper.attention import HopperTests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401


class TestGluonSpecialised(HopperTests):
    function = staticmethod(gluon_specialised.attention)
