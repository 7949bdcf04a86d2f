"""Tests of snippets/hopper/product_specialised.py."""

from snippets.hopper import product_specialised
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401
from tests.snippets.hopper.products import ProductTests


class TestSpecialised(ProductTests):
    function = staticmethod(product_specialised.product)
    stages = ({"stages": 2}, {"stages": 3})
