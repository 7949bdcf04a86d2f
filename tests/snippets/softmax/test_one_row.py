"""Tests of snippets/softmax/one_row.py."""

from collections.abc import Callable

import pytest
import torch

from snippets.softmax import one_row
from tests.mutations import Mutation
from tests.snippets.softmax.cases import (
    LAUNCH_MUTATIONS,
    STORE_MUTATIONS,
    SoftmaxTests,
    baseline,
    load_mutations,
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


MUTATIONS = [
    *load_mutations(1),
    *STORE_MUTATIONS,
    *LAUNCH_MUTATIONS,
    Mutation(
        "tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "tl.arange(0, BLOCK_COLS)",
        "column offsets in 32 bits",
    ),
    Mutation(
        "mask = offs < cols", "mask = offs <= cols", "a mask that is one too long"
    ),
    Mutation(
        "mask = offs < cols", "mask = offs < BLOCK_COLS", "a mask that is always true"
    ),
    Mutation("tl.exp(x - m_i)", "tl.exp(x)", "no maximum subtracted"),
    Mutation("tl.exp(x - m_i)", "tl.exp(m_i - x)", "a wrong sign"),
    Mutation("y = numerator / l_i", "y = numerator", "no division"),
    Mutation("tl.max(x, axis=0)", "tl.min(x, axis=0)", "the minimum for the maximum"),
    Mutation("x.shape[1] > 65536", "x.shape[1] > 65535", "the longest row refused"),
    Mutation("x.shape[1] > 65536", "x.shape[1] > 65537", "a row too long accepted"),
]
