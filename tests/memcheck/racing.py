"""A race in shared memory, on purpose: one warp group writes a tile, another reads it.

`python -m tests.memcheck.racing` runs it. With --wait the reader waits at an mbarrier
until the writer has arrived there, so there is no race; racecheck reports it as well,
because it does not follow mbarriers.
"""

import sys

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

SIZE = gl.constexpr(512)
LAYOUT = gl.constexpr(gl.BlockedLayout([4], [32], [4], [0]))
SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, order=[0]))


@gluon.jit
def write(x_ptr, tile, written, WAIT: gl.constexpr):
    tile.store(gl.load(x_ptr + gl.arange(0, SIZE, LAYOUT)))
    if WAIT:
        mbarrier.arrive(written)


@gluon.jit
def read(y_ptr, tile, written, WAIT: gl.constexpr):
    if WAIT:
        mbarrier.wait(written, 0)
    gl.store(y_ptr + gl.arange(0, SIZE, LAYOUT), tile.load(LAYOUT))


@gluon.jit
def racing_kernel(x_ptr, y_ptr, WAIT: gl.constexpr):
    tile = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [SIZE], SHARED)
    written = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(written, count=1)
    gl.warp_specialize(
        [
            (write, (x_ptr, tile, written, WAIT)),
            (read, (y_ptr, tile, written, WAIT)),
        ],
        worker_num_warps=[4],
        worker_num_regs=[64],
    )


def copy(x: torch.Tensor, *, wait: bool = False) -> torch.Tensor:
    """x, of 512 numbers; without `wait`, what the tile held before may come back."""
    y = torch.empty_like(x)
    racing_kernel[(1,)](x, y, WAIT=wait, num_warps=4, maxnreg=128)
    return y


if __name__ == "__main__":
    x = torch.arange(512.0, device="cuda")
    wrong = (copy(x, wait="--wait" in sys.argv) != x).sum()
    print(f"cuda: {wrong} of 512 numbers are wrong")
