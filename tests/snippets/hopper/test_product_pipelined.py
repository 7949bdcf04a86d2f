"""Tests of snippets/hopper/product_pipelined.py."""

from snippets.hopper import product_pipelined
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401
from tests.snippets.hopper.products import ProductTests


class TestPipelined(ProductTests):
    function = staticmethod(product_pipelined.product)
    stages = ({"stages": 2}, {"stages": 3})
