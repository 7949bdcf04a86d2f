"""Tests of snippets/softmax/safe.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.softmax import safe
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import LAYOUTS, SPECIALS, normal
from tests.snippets.softmax.suite import baseline, every_dtype, reference, row_sum_bound


@every_dtype
@pytest.mark.parametrize("cols", [1, 3, 200, 1000])
def test_softmax(cols: int, dtype: torch.dtype, device: str) -> None:
    x = normal((3, cols), dtype, device)
    y = safe.softmax(x)
    check_accuracy(y, reference(x), baseline(x))
    assert ((y.double().sum(dim=-1) - 1).abs() <= row_sum_bound(dtype)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_many_terms_that_16_bits_would_lose(dtype: torch.dtype, device: str) -> None:
    # Each is 2.8e-8, half of the smallest number of float16; together they are 0.0018.
    x = torch.full((1, 65536), -17.4, dtype=dtype, device=device)
    x[0, 0] = 0
    check_accuracy(safe.softmax(x), reference(x), baseline(x))
    lse = torch.logsumexp(x.double(), dim=-1)
    check_accuracy(safe.logsumexp(x), lse, torch.logsumexp(x, dim=-1))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    x = LAYOUTS[layout](normal((5, 100), torch.float32, device))
    check_accuracy(safe.softmax(x), reference(x), baseline(x))


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize("cols", [3, 200])
def test_special_values(special: str, cols: int, device: str) -> None:
    value, where = SPECIALS[special]
    x = normal((3, cols), torch.float32, device)
    x[1, where] = value
    check_accuracy(safe.softmax(x), reference(x), baseline(x))
    lse = torch.logsumexp(x, dim=-1)
    check_accuracy(safe.logsumexp(x), torch.logsumexp(x.double(), dim=-1), lse)


@pytest.mark.parametrize("shift", [-1000, 100, 10_000])
def test_a_shift_changes_softmax_not_at_all_and_logsumexp_by_itself(
    shift: int, device: str
) -> None:
    x = (
        normal((3, 200), torch.float32, device) * 8
    ).round()  # so that x + shift is exact
    assert torch.equal(safe.softmax(x + shift), safe.softmax(x))
    expected = torch.logsumexp(x.double(), dim=-1) + shift
    check_accuracy(
        safe.logsumexp(x + shift), expected, torch.logsumexp(x + shift, dim=-1)
    )


def test_naive_is_softmax_while_exp_fits(device: str) -> None:
    x = normal((3, 200), torch.float32, device)
    check_accuracy(safe.naive(x), reference(x), baseline(x))
    assert safe.naive(x + 100).isnan().any()
    assert safe.naive(x - 200).isnan().all()


def test_one_and_three_dimensions(device: str) -> None:
    x = normal((6, 7), torch.float64, device).view(2, 3, 7)
    for part in (x, x[0, 0]):
        check_accuracy(safe.softmax(part), reference(part), baseline(part))
        lse = torch.logsumexp(part, dim=-1)
        check_accuracy(safe.logsumexp(part), lse, lse)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (0, 0)])
def test_empty(shape: tuple[int, ...], device: str) -> None:
    x = torch.zeros(shape, device=device)
    assert safe.softmax(x).shape == shape
    assert torch.equal(safe.logsumexp(x), torch.logsumexp(x, dim=-1))


@given(
    rows=st.lists(
        st.lists(st.floats(-1e4, 1e4, width=32), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_softmax_is_the_exponential_of_x_minus_logsumexp(
    device: str, rows: list[list[float]]
) -> None:
    x = torch.tensor(rows, dtype=torch.float64, device=device)
    expected = torch.exp(x - safe.logsumexp(x)[:, None])
    torch.testing.assert_close(safe.softmax(x), expected, rtol=1e-10, atol=1e-300)
