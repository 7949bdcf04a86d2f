"""Tests of snippets/hopper/gluon_flash.py."""

from snippets.hopper import gluon_flash
from tests.snippets.hopper.attention import HopperTests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401


class TestGluonFlash(HopperTests):
    function = staticmethod(gluon_flash.attention)
    bad_head_dims = (0, 12, 264)  # 264 is a multiple of 8, too
