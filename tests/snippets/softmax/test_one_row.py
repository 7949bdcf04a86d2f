"""Tests of snippets/softmax/one_row.py."""

from collections.abc import Callable

import pytest
import torch

from snippets.softmax import one_row
from tests.snippets.softmax.cases import (
    SoftmaxTests,
    baseline,
    normal,
    reference,
)


class TestOneRow(SoftmaxTests):
    softmax = staticmethod(one_row.softmax)

    def test_the_longest_row(self, device: str, check_accuracy: Callable) -> None:
        x = normal(2, 65536, torch.float32, device)
        check_accuracy(self.run(x), reference(x), baseline(x))

    def test_refuses_a_longer_row(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(torch.zeros((1, 65537), device=device))
