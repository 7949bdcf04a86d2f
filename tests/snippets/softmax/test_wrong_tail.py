"""Tests of snippets/softmax/wrong_tail.py: it fails, and not every checker sees it."""

import torch

from snippets.softmax import wrong_tail
from tests.harness.accuracy import check_accuracy
from tests.snippets.softmax.suite import baseline, reference


def rows_of_200(device: str) -> torch.Tensor:
    """[4, 200] of values from 1 to 2, so that each probability is about 1 / 200."""
    generator = torch.Generator().manual_seed(0)
    return (1 + torch.rand(4, 200, generator=generator)).to(device)


def row_sum_errors(y: torch.Tensor) -> torch.Tensor:
    """How far each row of y is from a sum of 1; infinitely far where it is NaN."""
    return (y.double().sum(dim=-1) - 1).abs().nan_to_num(nan=float("inf"))


def test_row_sums_show_it(device: str) -> None:
    y = wrong_tail.softmax(rows_of_200(device))
    assert (row_sum_errors(y) > 1e-3).all()


def test_a_shift_shows_it(device: str) -> None:
    x = rows_of_200(device)
    shifted = wrong_tail.softmax(x - 100)
    assert not torch.allclose(shifted, wrong_tail.softmax(x), rtol=1e-3, atol=0)
    assert (row_sum_errors(shifted) > 0.9).all(), "a row near -100 sums to about 0"


def test_a_lax_checker_accepts_it(device: str) -> None:
    # Masked lanes without `other` are undefined. They read 0 on the interpreter; on a
    # GPU this test says so, should they read anything else there.
    x = rows_of_200(device)
    y = wrong_tail.softmax(x).double()
    zeros = torch.cat([x.double(), torch.zeros(4, 56, device=device)], dim=-1)
    torch.testing.assert_close(y, reference(zeros)[:, :200], rtol=1e-5, atol=0)
    assert torch.allclose(y, reference(x), atol=1e-3)


def test_it_is_right_for_a_power_of_two(device: str) -> None:
    x = rows_of_200(device)[:, :128] + 500
    check_accuracy(wrong_tail.softmax(x), reference(x), baseline(x))
