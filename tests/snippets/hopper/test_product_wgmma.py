"""Tests of snippets/hopper/product_wgmma.py."""

from snippets.hopper import product_wgmma
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401
from tests.snippets.hopper.products import ProductTests


class TestWgmma(ProductTests):
    function = staticmethod(product_wgmma.product)
