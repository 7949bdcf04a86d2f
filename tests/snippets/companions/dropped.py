"""What the tests of dropout share: far programs, unread seeds, and correlations."""

import mmap
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime import interpreter

SIGMAS = 5
NORESERVE = 0x4000  # of Linux: memory that may be more than there is


def start_at(program: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, the interpreter's first program on axis 0 has this number."""
    builder = interpreter.InterpreterBuilder
    made = builder.create_get_program_id

    def moved(self: interpreter.InterpreterBuilder, axis: int) -> object:
        handle = made(self, axis)
        if axis == 0:
            handle.data = handle.data + handle.data.dtype.type(program)
        return handle

    monkeypatch.setattr(builder, "create_get_program_id", moved)


def untouched(size: int, dtype: torch.dtype) -> torch.Tensor:
    """Zeros on the CPU, whose memory costs nothing where nobody touches it."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    return torch.frombuffer(mmap.mmap(-1, size * dtype.itemsize, flags), dtype=dtype)


class Unread(TorchDispatchMode):
    """Inside, the CPU reads no number of a tensor: a CUDA graph would keep it."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call what is no int(x) or x.item()."""
        assert function is not torch.ops.aten._local_scalar_dense.default
        return function(*args, **(kwargs or {}))


def check_share(keep: torch.Tensor, p: float) -> None:
    """As many stay as should, within five standard deviations."""
    found, n = keep.double().mean().item(), keep.numel()
    assert abs(found - (1 - p)) <= SIGMAS * (p * (1 - p) / n) ** 0.5


def check_uncorrelated(a: torch.Tensor, b: torch.Tensor) -> None:
    """The correlation of two masks is 0, within five standard deviations."""
    pair = torch.stack([a.flatten(), b.flatten()]).double()
    assert abs(torch.corrcoef(pair)[0, 1].item()) <= SIGMAS * a.numel() ** -0.5
