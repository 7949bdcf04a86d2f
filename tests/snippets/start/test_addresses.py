"""Tests of snippets/start/addresses.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import addresses

NO_ACCURACY = "integers: they are compared exactly"


def test_the_table_of_the_page() -> None:
    assert addresses.addresses(rows=3, cols=4, stride=10).tolist() == [
        [0, 1, 2, 3],
        [10, 11, 12, 13],
        [20, 21, 22, 23],
    ]


@given(
    rows=st.integers(1, 20),
    cols=st.integers(1, 20),
    stride=st.one_of(st.integers(-50, 50), st.sampled_from([2**31, 2**40])),
)
def test_any_table(device: str, rows: int, cols: int, stride: int) -> None:
    table = addresses.addresses(rows, cols, stride)
    assert table.shape == (rows, cols)
    assert table.dtype == torch.int64
    assert table.device.type == device
    expected = [[row * stride + col for col in range(cols)] for row in range(rows)]
    assert table.tolist() == expected


@pytest.mark.parametrize("shape", [(256, 256), (1, 256), (256, 1)])
def test_the_largest_tables(shape: tuple[int, int]) -> None:
    table = addresses.addresses(*shape, 2**30)
    assert table[-1, -1] == (shape[0] - 1) * 2**30 + shape[1] - 1


def test_they_are_the_offsets_of_a_slice() -> None:
    storage = torch.arange(200).view(10, 20)
    x = storage[:5, :7]
    assert torch.equal(addresses.addresses(5, 7, x.stride(0)).cpu(), x)
