"""Tests of snippets/start/copy_tile.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import copy_tile
from tests.harness.inputs import DTYPES, LAYOUTS, far_apart, normal
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded

NO_ACCURACY = "a copy: it is compared bit for bit"

SMALL = {"block_rows": 4, "block_cols": 8}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 8), (5, 9), (9, 40)])
def test_shapes(shape: tuple[int, int], dtype: torch.dtype, device: str) -> None:
    x = guarded(normal(shape, dtype, device))
    y = copy_tile.copy(x, **SMALL)
    assert torch.equal(y, x)
    assert y.is_contiguous()
    assert y.dtype == x.dtype


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    x = guarded(LAYOUTS[layout](normal((5, 20), torch.float32, device)))
    y = copy_tile.copy(x, **SMALL)
    assert torch.equal(y, x)
    assert y.is_contiguous()


@given(
    rows=st.integers(1, 12),
    cols=st.integers(1, 12),
    block_rows=st.sampled_from([1, 4, 16]),
    block_cols=st.sampled_from([1, 4, 16]),
    strides=st.tuples(st.integers(0, 15), st.integers(0, 15)),
)
def test_any_tile_and_strides(
    device: str,
    rows: int,
    cols: int,
    block_rows: int,
    block_cols: int,
    strides: tuple[int, int],
) -> None:
    storage = normal((1, 500), torch.float32, device).view(-1)
    x = storage.as_strided((rows, cols), strides)
    y = copy_tile.copy(x, block_rows=block_rows, block_cols=block_cols)
    assert torch.equal(y, x)


def test_default_tile(device: str) -> None:
    x = normal((70, 40), torch.float32, device).T
    assert torch.equal(copy_tile.copy(x), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_offsets_beyond_31_bits(axis: int, device: str) -> None:
    x = far_apart((4, 4), axis, torch.float16, device)
    assert torch.equal(copy_tile.copy(x, block_rows=2, block_cols=2), x)


@pytest.mark.gpu
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.large
def test_more_than_31_bits_of_elements(transposed: bool) -> None:
    shape = (2**31 // 4096 + 3, 4096)
    x = torch.empty(
        shape[::-1] if transposed else shape, dtype=torch.float16, device="cuda"
    ).normal_()
    x = x.T if transposed else x
    assert torch.equal(copy_tile.copy(x), x)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty(shape: tuple[int, int], device: str) -> None:
    assert copy_tile.copy(torch.zeros(shape, device=device)).shape == shape


def test_refuses(device: str) -> None:
    x = torch.zeros(2, 3, device=device)
    with pytest.raises(ValueError, match=r"^x has 1 dimensions; it must have 2"):
        copy_tile.copy(x[0])
    with pytest.raises(ValueError, match=r"^x is torch.int32; it must be .*float16"):
        copy_tile.copy(x.int())
    with pytest.raises(ValueError, match=r"^x has 65536 columns; .* 65535"):
        copy_tile.copy(torch.zeros(0, 65536, device=device), block_cols=1)


def test_refuses_to_lose_a_gradient(device: str) -> None:
    x = torch.ones(2, 3, device=device, requires_grad=True)
    with pytest.raises(ValueError, match=r"^x requires a gradient"):
        copy_tile.copy(x)
    with torch.no_grad():
        assert torch.equal(copy_tile.copy(x), x)


def test_launches_on_the_device_of_its_input(device: str) -> None:
    check_where_it_launches(copy_tile.copy, torch.zeros(2, 3, device=device))
