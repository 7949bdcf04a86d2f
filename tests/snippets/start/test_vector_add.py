"""Tests of snippets/start/vector_add.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import vector_add
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
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
    out = vector_add.add(x, y, block=16)
    check_accuracy(out, x.double() + y.double(), x + y)
    assert out.is_contiguous()


@given(
    size=st.integers(1, 70),
    block=st.sampled_from([1, 2, 16, 64, 1024]),
    offset=st.integers(0, 5),
)
def test_any_block_and_start(device: str, size: int, block: int, offset: int) -> None:
    storage = normal((100,), torch.float32, device)
    x, y = storage[:size], storage[offset : offset + size]
    assert torch.equal(vector_add.add(x, y, block=block), x + y)


def test_nan_and_infinities(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([nan, 1.0, inf, inf, -inf, 1.0], device=device)
    y = torch.tensor([1.0, nan, inf, -inf, 1.0, 2.0], device=device)
    torch.testing.assert_close(vector_add.add(x, y), x + y, equal_nan=True)


def test_empty(device: str) -> None:
    x = torch.zeros(0, device=device)
    assert vector_add.add(x, x).shape == (0,)


def test_refuses(device: str) -> None:
    x = torch.zeros(4, device=device)
    for bad, said in [
        ((x.view(2, 2), x), "x has 2 dimensions"),
        ((x.int(), x.int()), "x is torch.int32"),
        ((x, x[:3]), r"y is \[3\]"),
        ((x, x.half()), r"y is \[4\] torch.float16"),
        ((x, x.view(2, 2)), r"y is \[2, 2\]"),
        ((x[::2], x[:2]), "x has stride 2"),
        ((x[:2], x[:1].expand(2)), "y has stride 0"),
    ]:
        with pytest.raises(ValueError, match=f"^{said}"):
            vector_add.add(*bad)


def test_refuses_to_lose_a_gradient(device: str) -> None:
    x = torch.ones(4, device=device)
    needs = x.clone().requires_grad_()
    for inputs, tensor in (((needs, x), "x"), ((x, needs), "y")):
        with pytest.raises(ValueError, match=f"^{tensor} requires a gradient"):
            vector_add.add(*inputs)
        with torch.no_grad():
            assert (vector_add.add(*inputs) == 2).all()


def test_launches_on_the_device_of_its_inputs(device: str) -> None:
    x = torch.ones(4, device=device)
    check_where_it_launches(vector_add.add, x, x)


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_31_bits_of_elements() -> None:
    x = torch.empty(2**31 + 5, dtype=torch.float16, device="cuda").normal_()
    out = vector_add.add(x, x)
    for some in (slice(5), slice(2**30 - 5, 2**30 + 5), slice(-10, None)):
        assert torch.equal(out[some], 2 * x[some])
    assert not out.isnan().any()
