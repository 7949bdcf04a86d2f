"""Tests of snippets/softmax/wrong_naive.py: right for small values, NaN for large."""

import math

import pytest
import torch

from snippets.softmax import wrong_naive
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import DTYPES, name, normal
from tests.snippets.softmax.suite import baseline, every_dtype, reference

# From these values on, exp rounds to infinity: the logarithm of the largest finite
# value, on the grid of the dtype.
THRESHOLDS = {
    torch.float16: 11.09375,
    torch.bfloat16: 89.0,
    torch.float32: math.log(torch.finfo(torch.float32).max),
    torch.float64: math.log(torch.finfo(torch.float64).max),
}


@every_dtype
def test_the_threshold(dtype: torch.dtype) -> None:
    found = wrong_naive.overflow_threshold(dtype)
    # The last digits depend on how the device computes exp.
    assert found == pytest.approx(THRESHOLDS[dtype], rel=1e-6)


@every_dtype
def test_the_threshold_is_the_first_value_that_overflows(
    dtype: torch.dtype, device: str
) -> None:
    first = torch.tensor([[wrong_naive.overflow_threshold(dtype)]], dtype=dtype)
    before = torch.nextafter(first.double(), torch.zeros(1, 1).double())
    if dtype != torch.float64:
        spacing = torch.finfo(dtype).eps * 2 ** math.floor(math.log2(first.item()))
        before = first.double() - spacing
    before = before.to(dtype)
    assert before < first
    assert wrong_naive.softmax(first.to(device)).isnan().all()
    assert wrong_naive.softmax(before.to(device)).item() == 1
    assert reference(first).item() == 1, "the right answer"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=name)
def test_a_large_value_makes_its_whole_row_nan_or_zero(
    dtype: torch.dtype, device: str
) -> None:
    x = normal((2, 100), dtype, device)
    x[1, 7] = 100
    y = wrong_naive.softmax(x)
    assert y[0].isfinite().all()
    assert y[1, 7].isnan()
    assert (y[1, :7] == 0).all()


@every_dtype
def test_a_shift_down_gives_nan_too(dtype: torch.dtype, device: str) -> None:
    # Every exp(x) is 0, and 0 / 0 is NaN.
    x = normal((2, 100), dtype, device) - 800
    assert wrong_naive.softmax(x).isnan().all()


@pytest.mark.parametrize("cols", [1, 64, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=name)
def test_it_is_right_for_small_values(
    cols: int, dtype: torch.dtype, device: str
) -> None:
    x = normal((3, cols), dtype, device)
    check_accuracy(wrong_naive.softmax(x), reference(x), baseline(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=name)
def test_rounding_the_exponential_costs_precision(
    dtype: torch.dtype, device: str
) -> None:
    x = normal((3, 100), dtype, device)
    exponential = torch.exp(x.float()).to(dtype).float()
    rounded = (exponential / exponential.sum(dim=-1, keepdim=True)).to(dtype)
    check_accuracy(wrong_naive.softmax(x), reference(x), rounded)


def test_every_dtype_has_a_threshold() -> None:
    assert set(THRESHOLDS) == set(DTYPES)
