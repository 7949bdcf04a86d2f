"""Tests of snippets/companions/moments.py."""

import math

import pytest
import torch

from snippets.companions import moments
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import name, normal

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
RIGHT = moments.FORMS[1:]


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("form", moments.FORMS)
@pytest.mark.parametrize("cols", [1, 2, 3, 31, 32, 33, 200])
def test_each_form_is_a_layer_norm(form, dtype, cols, device):
    x = normal((3, cols), dtype, device)
    inner = torch.float64 if dtype == torch.float64 else torch.float32
    centred, variance = form(x.to(inner))
    assert centred.shape == x.shape
    assert variance.shape == (3, 1)
    y = (centred / torch.sqrt(variance + 1e-5)).to(dtype)
    expected = torch.nn.functional.layer_norm(x.double(), (cols,))
    # One column has no variance: what is left of 0 by rounding is 316 times as much.
    # Of one after the other, each of cols additions is rounded.
    own = torch.nn.functional.layer_norm(x, (cols,))
    units = (cols + 8) * torch.finfo(inner).eps
    check_accuracy(y, expected, own + units * own.abs().max().to(own.dtype))


@pytest.mark.parametrize("form", moments.FORMS)
def test_mean_and_variance_are_those_of_float64(form, device):
    x = normal((4, 500), torch.float64, device) * 3 + 7
    centred, variance = form(x)
    torch.testing.assert_close(centred, x - x.mean(dim=1, keepdim=True))
    expected = x.var(dim=1, keepdim=True, correction=0)
    torch.testing.assert_close(variance, expected)


@pytest.mark.parametrize("mean", [0, 10, 1000])
def test_the_order_of_the_forms(mean):
    """The page: what each form loses of rows with a large mean."""
    x = (normal((64, 1000), torch.float32, "cpu") + mean).half()
    errors = [moments.error(form, x) for form in moments.FORMS]
    squares, two_passes, shifted, welford, merged = errors
    assert shifted < 2e-6
    if mean == 1000:
        assert not squares < 0.05  # or NaN
        assert 5 * shifted < two_passes < 1e-3
        assert merged < welford < 1e-2


def test_each_row_has_a_shift_of_its_own():
    x = normal((4, 100), torch.float32, "cpu")
    x += torch.tensor([[0.0], [1e3], [1e4], [1e5]])
    assert moments.error(moments.shifted, x) < 2e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=name)
def test_a_constant_row_has_no_deviation(dtype):
    x = torch.full((2, 1000), 1001.3).half()
    for form in (moments.shifted, moments.welford, moments.merged):
        assert moments.error(form, x, dtype) == 0


def test_squares_beyond_float16_have_no_root():
    x = torch.full((1, 10), 300.0)
    assert math.isnan(moments.error(moments.squares, x, torch.float16))
    assert moments.error(moments.two_passes, x, torch.float16) == 0


def test_error_is_the_distance_from_float64():
    def off_by_a_tenth(x):
        centred, variance = moments.two_passes(x)
        return centred + 0.1 * torch.sqrt(variance + 0.5), variance

    x = normal((2, 50), torch.float32, "cpu")
    found = moments.error(off_by_a_tenth, x, torch.float64, eps=0.5)
    assert found == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (1, 2, 3)])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="x is"):
        moments.error(moments.two_passes, torch.zeros(shape))


def test_inner_is_the_dtype_of_the_arithmetic():
    seen = []

    def spy(x):
        seen.append(x.dtype)
        return moments.two_passes(x)

    moments.error(spy, torch.ones(1, 2).half())
    moments.error(spy, torch.ones(1, 2), torch.float16)
    assert seen == [torch.float32, torch.float16]


def test_the_table_has_a_line_for_each_form(capsys):
    moments.print_table({"a": torch.full((1, 4), 300.0)}, torch.float16)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "float16",
        *(form.__name__ for form in moments.FORMS),
    ]
    assert lines[0].split()[1:] == ["a"]
    # The square of 300 is beyond float16.
    assert math.isnan(float(lines[1].split()[1]))
    assert float(lines[2].split()[1]) == 0
