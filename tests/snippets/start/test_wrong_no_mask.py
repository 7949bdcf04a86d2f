"""Tests of snippets/start/wrong_no_mask.py: it writes behind its output."""

import pytest
import torch
import triton

from snippets.start import wrong_no_mask


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


def test_strided_vectors(device: str) -> None:
    x, y, out = vectors(48, device)
    x[1::3] = 5
    wrong_no_mask.add(x[1::3], y[:32:2], out[2::3], block=16)
    assert (out[2::3] == 7).all()
    assert (out.view(-1, 3)[:, :2] == 0).all()


def test_empty(device: str) -> None:
    wrong_no_mask.add(*vectors(0, device))


def test_refuses(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = vectors(16, device)
    for bad, said in [
        ((x.view(4, 4), y, out), "x has 2 dimensions"),
        ((x.int(), y, out), "x is torch.int32"),
        ((x, y[:3], out), r"y is \[3\]"),
        ((x, y, out.half()), r"out is \[16\] torch.float16"),
    ]:
        with pytest.raises(ValueError, match=f"^{said}"):
            wrong_no_mask.add(*bad, block=16)
    if device == "cpu":
        with pytest.raises(ValueError, match=r"^x is bfloat16, .* must be on a GPU"):
            wrong_no_mask.add(x.bfloat16(), y, out)
    for block in (0, 3, 2**17):
        with pytest.raises(ValueError, match=f"^block is {block}; .* power of two"):
            wrong_no_mask.add(x, y, out, block=block)
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    with pytest.raises(ValueError, match=r"^x is on cpu; .* TRITON_INTERPRET=1"):
        wrong_no_mask.add(x.cpu(), y.cpu(), out.cpu())
