"""Tests of snippets/hopper/gluon_overlapped.py."""

from snippets.hopper import gluon_overlapped
from tests.snippets.hopper.attention import HopperTests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401


class TestGluonOverlapped(HopperTests):
    function = staticmethod(gluon_overlapped.attention)
