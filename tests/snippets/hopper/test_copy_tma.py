"""Tests of snippets/hopper/copy_tma.py."""

import pytest
import torch

from snippets.hopper import copy_tma
from tests.harness.inputs import (
    DTYPES,
    LAYOUTS,
    UNALIGNED,
    far_apart,
    lengths_around,
    normal,
)
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.snippets.hopper.gluon import (
    check_what_is_filled,
    in_rows_of_16_bytes,
)

NO_ACCURACY = "a copy: it is compared bit for bit"

SMALL = {"block_rows": 8, "block_cols": 64}
both = pytest.mark.parametrize("strips", [False, True])


@pytest.mark.gpu
@both
@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("cols", lengths_around(64))
@pytest.mark.parametrize("rows", [1, 3, 7, 8, 9, 200])
def test_shapes(
    rows: int, cols: int, dtype: torch.dtype, strips: bool, device: str
) -> None:
    x = guarded(in_rows_of_16_bytes(normal((rows, cols), dtype, device)))
    y = copy_tma.copy(x, strips=strips, **SMALL)
    assert torch.equal(y, x)
    assert y.dtype == x.dtype


@pytest.mark.gpu
@both
@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("cols", lengths_around(64))
def test_fills_the_last_16_bytes_of_each_row(
    cols: int, dtype: torch.dtype, strips: bool, device: str
) -> None:
    x = guarded(in_rows_of_16_bytes(normal((9, cols), dtype, device)))
    check_what_is_filled(lambda: copy_tma.copy(x, strips=strips, **SMALL))


@pytest.mark.gpu
@both
@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("block_cols", [64, 128])
@pytest.mark.parametrize("block_rows", [8, 16, 64, 128])
def test_tiles(
    block_rows: int, block_cols: int, dtype: torch.dtype, strips: bool, device: str
) -> None:
    x = guarded(normal((300, 600), dtype, device))
    tile = {"block_rows": block_rows, "block_cols": block_cols}
    assert torch.equal(copy_tma.copy(x, strips=strips, **tile), x)


@pytest.mark.gpu
@both
@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - UNALIGNED))
def test_layouts(layout: str, strips: bool, device: str) -> None:
    x = guarded(LAYOUTS[layout](normal((20, 200), torch.float32, device)))
    assert torch.equal(copy_tma.copy(x, strips=strips), x)


@pytest.mark.gpu
@both
def test_a_strip_of_many_tiles(strips: bool, device: str) -> None:
    # Phases come round many times: a tile that is read too early shows.
    x = normal((64, 20000), torch.bfloat16, device)
    for _ in range(20):
        assert torch.equal(copy_tma.copy(x, strips=strips), x)


@pytest.mark.gpu
@pytest.mark.large
@both
def test_offsets_beyond_31_bits(strips: bool, device: str) -> None:
    x = far_apart((4, 64), 0, torch.float16, device)
    assert torch.equal(copy_tma.copy(x, strips=strips), x)


@pytest.mark.gpu
@pytest.mark.large
@both
def test_more_than_31_bits_of_elements(strips: bool, device: str) -> None:
    shape = (2**31 // 4096 + 3, 4096)
    x = torch.empty(shape, dtype=torch.float16, device=device).normal_()
    assert torch.equal(copy_tma.copy(x, strips=strips), x)


@both
@pytest.mark.parametrize("shape", [(0, 8), (5, 0), (0, 0)])
def test_empty(shape: tuple[int, int], strips: bool, device: str) -> None:
    x = torch.zeros(shape, device=device)
    assert copy_tma.copy(x, strips=strips).shape == shape


def test_refuses(device: str) -> None:
    x = torch.zeros(8, 8, device=device)
    with pytest.raises(ValueError, match=r"^x has 1 dimensions; it must have 2"):
        copy_tma.copy(x[0])
    with pytest.raises(ValueError, match=r"^x is torch.float64; it must .*float16"):
        copy_tma.copy(x.double())
    odd = x.flatten()[1:57].view(7, 8)
    for wrong in (x[:4].T, x[:, ::2], torch.zeros(8, 7, device=device), odd):
        with pytest.raises(ValueError, match=r"^x has strides .*; it must .*16 bytes"):
            copy_tma.copy(wrong)


def test_refuses_to_lose_a_gradient(device: str) -> None:
    x = torch.ones(8, 8, device=device, requires_grad=True)
    with pytest.raises(ValueError, match=r"^x requires a gradient"):
        copy_tma.copy(x)


@pytest.mark.gpu
def test_copies_where_no_gradient_is_asked_for(device: str) -> None:
    x = torch.ones(8, 8, device=device, requires_grad=True)
    with torch.no_grad():
        assert torch.equal(copy_tma.copy(x), x)


@pytest.mark.gpu
@both
def test_launches_on_the_device_of_its_input(strips: bool, device: str) -> None:
    x = torch.zeros(8, 8, device=device)
    check_where_it_launches(copy_tma.copy, x, strips=strips)
