"""Tests of snippets/start/wrong_no_mask.py: it writes behind its output."""

import pytest
import torch

from snippets.start import wrong_no_mask

NO_ACCURACY = "wrong on purpose: it is shown to leave its tensors"


def vectors(size: int, device: str, spare: int = 0) -> list[torch.Tensor]:
    """x, y and out, [size], each with `spare` elements behind it that are its own."""
    return [
        torch.full((size + spare,), value, device=device)[:size]
        for value in (1.0, 2.0, 0.0)
    ]


@pytest.mark.leaves_tensors
def test_it_leaves_its_tensors(device: str) -> None:
    x, y, _ = vectors(20, device, spare=12)
    wrong_no_mask.add(x, y, torch.empty(20, device=device), block=16)


@pytest.mark.gpu
def test_it_overwrites_what_lies_behind_its_output(device: str) -> None:
    x, y, out = vectors(20, device, spare=12)
    behind = out.as_strided((12,), (1,), 20)
    wrong_no_mask.add(x, y, out, block=16)
    assert (out == 3).all()
    assert (behind == 3).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [16, 48])
def test_it_is_right_for_whole_blocks(
    size: int, dtype: torch.dtype, device: str
) -> None:
    x, y, out = (vector.to(dtype) for vector in vectors(size, device))
    wrong_no_mask.add(x, y, out, block=16)
    assert (out == 3).all()
