"""Tests of snippets/start/strided_add.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import strided_add
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import far_apart, normal
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded

DTYPES = [
    torch.float16,
    pytest.param(torch.bfloat16, marks=pytest.mark.gpu),  # the interpreter adds bits
    torch.float32,
    torch.float64,
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 200])
def test_lengths(size: int, dtype: torch.dtype, device: str) -> None:
    x, y = (guarded(each) for each in normal((2, size), dtype, device))
    out = strided_add.add(x, y, block=16)
    check_accuracy(out, x.double() + y.double(), x + y)


@given(
    size=st.integers(1, 40),
    block=st.sampled_from([1, 2, 16, 64]),
    strides=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_any_strides(
    device: str, size: int, block: int, strides: tuple[int, int]
) -> None:
    of_x, of_y = normal((2, 200), torch.float32, device)
    x, y = of_x.as_strided((size,), strides[:1]), of_y.as_strided((size,), strides[1:])
    out = strided_add.add(x, y, block=block)
    assert torch.equal(out, x + y)
    assert out.is_contiguous()


def test_reads_nothing_between_its_elements(device: str) -> None:
    table = torch.full((40, 7), float("nan"), device=device)
    table[:, 3] = normal((40,), torch.float32, device)
    out = strided_add.add(table[:, 3], table[:, 3], block=16)
    assert torch.equal(out, 2 * table[:, 3])


def test_offsets_beyond_31_bits(device: str) -> None:
    x = far_apart((8, 1), 0, torch.float16, device)[:, 0]
    y = normal((8,), torch.float16, device)
    assert torch.equal(strided_add.add(x, y, block=4), x + y)
    assert torch.equal(strided_add.add(y, x, block=4), x + y)


def test_nan_and_infinities(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([nan, 1.0, inf, inf, -inf, 1.0], device=device)
    y = torch.tensor([1.0, nan, inf, -inf, 1.0, 2.0], device=device)
    torch.testing.assert_close(strided_add.add(x, y), x + y, equal_nan=True)


def test_empty(device: str) -> None:
    x = torch.zeros(0, device=device)
    assert strided_add.add(x, x).shape == (0,)


def test_refuses(device: str) -> None:
    x = torch.zeros(4, device=device)
    needs = x.clone().requires_grad_()
    for bad, said in [
        ((x.view(2, 2), x), "x has 2 dimensions"),
        ((x.int(), x.int()), "x is torch.int32"),
        ((x, x[:3]), r"y is \[3\]"),
        ((x, x.half()), r"y is \[4\] torch.float16"),
        ((needs, x), "x requires a gradient"),
        ((x, needs), "y requires a gradient"),
    ]:
        with pytest.raises(ValueError, match=f"^{said}"):
            strided_add.add(*bad)
    with torch.no_grad():
        assert (strided_add.add(needs + 1, needs) == 1).all()


def test_launches_on_the_device_of_its_inputs(device: str) -> None:
    x = torch.ones(4, device=device)
    check_where_it_launches(strided_add.add, x, x)


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_31_bits_of_elements() -> None:
    table = torch.empty(2**26, 40, dtype=torch.float16, device="cuda").normal_()
    x, y = table[:, 1], table[:, 38]
    assert torch.equal(strided_add.add(x, y), x + y)
