"""Tests of snippets/softmax/one_row.py."""

import pytest
import torch

from snippets.softmax import one_row
from tests.harness.inputs import normal
from tests.snippets.softmax.suite import SoftmaxTests


class TestOneRow(SoftmaxTests):
    function = staticmethod(one_row.softmax)

    def test_the_longest_row(self, device: str) -> None:
        x = normal((2, 65536), torch.float32, device)
        self.check(x)

    def test_refuses_a_longer_row(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(torch.zeros((1, 65537), device=device))
