"""Tests of snippets/start/affine.py."""

import pytest
import torch

from snippets.start import affine
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.snippets.start.suite import dtypes, lengths


@dtypes
@lengths
def test_lengths(size: int, dtype: torch.dtype, device: str) -> None:
    x = guarded(normal((size,), dtype, device))
    out = affine.affine(x, block=16)
    check_accuracy(out, x.double() * 2 + 1, x * 2 + 1)


def test_any_shape(device: str) -> None:
    x = normal((3, 4, 5), torch.float32, device)
    out = affine.affine(x, block=32)
    assert torch.equal(out, x * 2 + 1)
    assert out.is_contiguous()


def test_nan_and_infinities(device: str) -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0], device=device)
    torch.testing.assert_close(affine.affine(x), x * 2 + 1, equal_nan=True)


def test_empty(device: str) -> None:
    assert affine.affine(torch.zeros(0, device=device)).shape == (0,)


def test_refuses(device: str) -> None:
    x = torch.zeros(4, device=device)
    for bad, said in [
        (x.int(), "x is torch.int32"),
        (x[::2], r"x has strides \(2,\)"),
        (x.clone().requires_grad_(), "x requires a gradient"),
    ]:
        with pytest.raises(ValueError, match=f"^{said}"):
            affine.affine(bad)
    with torch.no_grad():
        assert (affine.affine(x.clone().requires_grad_()) == 1).all()


def test_launches_on_the_device_of_its_input(device: str) -> None:
    check_where_it_launches(affine.affine, torch.ones(4, device=device))


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_31_bits_of_elements() -> None:
    x = torch.empty(2**31 + 5, dtype=torch.float16, device="cuda").normal_()
    out = affine.affine(x)
    for some in (slice(5), slice(2**30 - 5, 2**30 + 5), slice(-10, None)):
        assert torch.equal(out[some], x[some] * 2 + 1)
    assert not out.isnan().any()
