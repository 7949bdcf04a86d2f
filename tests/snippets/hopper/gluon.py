"""What the tests of Gluon kernels share."""

import contextvars
from collections.abc import Callable

import pytest
import torch
import triton

# Off the GPU, these tests see what is refused, and what needs no kernel.
NO_ACCURACY = "" if torch.cuda.is_available() else "no interpreter runs Gluon"


def in_rows_of_16_bytes(x: torch.Tensor) -> torch.Tensor:
    """x in a wider matrix, so that its rows begin where the TMA unit can."""
    rows, cols = x.shape
    each = 16 // x.element_size()
    wide = x.new_zeros(rows, -(-cols // each) * each)
    wide[:, :cols] = x
    return wide[:, :cols]


def check_for_races(call: Callable[[], object]) -> None:
    """Call it with kernels that Triton's concurrency sanitizer watches.

    Where two accesses to shared memory race, or a barrier is waited for that nobody
    completes, the kernel ends with an error, and CUDA with it.
    """

    def memory(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device="cuda")

    def watched() -> None:
        triton.set_allocator(memory)  # for what the sanitizer notes
        call()
        torch.cuda.synchronize()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton.knobs.compilation, "instrumentation_mode", "consan")
        contextvars.copy_context().run(watched)


def check_unwritten(x: torch.Tensor) -> None:
    """Nothing is written into what the rows of x are padded with."""
    assert x._base is not None
    assert x._base[:, x.shape[1] :].isnan().all()
