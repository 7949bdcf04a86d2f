"""Copying a matrix by TMA, in Gluon: tile by tile, or strip by strip in two stages."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


# --8<-- [start:kernel]
@gluon.jit
def tile_kernel(x_desc, y_desc):
    """One program copies one tile."""
    # --8<-- [start:where]
    block_rows: gl.constexpr = x_desc.block_type.shape[0]
    block_cols: gl.constexpr = x_desc.block_type.shape[1]
    across = gl.cdiv(x_desc.shape[1], block_cols)
    row = gl.program_id(0) // across * block_rows
    col = gl.program_id(0) % across * block_cols
    # --8<-- [end:where]

    # --8<-- [start:memory]
    tile = gl.allocate_shared_memory(
        x_desc.dtype, [block_rows, block_cols], x_desc.layout
    )
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    # --8<-- [line:init]
    mbarrier.init(full, count=1)
    # --8<-- [end:memory]

    # --8<-- [start:copy]
    # --8<-- [line:expect]
    mbarrier.expect(full, x_desc.block_type.nbytes)
    # --8<-- [line:load]
    tma.async_copy_global_to_shared(x_desc, [row, col], full, tile)
    # --8<-- [line:wait]
    mbarrier.wait(full, 0)
    # --8<-- [line:store]
    tma.async_copy_shared_to_global(y_desc, [row, col], tile)
    # --8<-- [line:store_wait]
    tma.store_wait(0)
    # --8<-- [end:copy]


# --8<-- [end:kernel]
# --8<-- [start:pipelined]
@gluon.jit
def load(x_desc, row, i, count, tiles, full):
    """Ask for tile i of a strip, if it has so many."""
    stage = i % 2
    mbarrier.expect(full.index(stage), x_desc.block_type.nbytes, pred=i < count)
    tma.async_copy_global_to_shared(
        x_desc, [row, i * x_desc.block_type.shape[1]],
        full.index(stage), tiles.index(stage), pred=i < count,
    )  # fmt: skip


@gluon.jit
def strip_kernel(x_desc, y_desc):
    """One program copies a strip of tiles: one arrives while another leaves."""
    block_rows: gl.constexpr = x_desc.block_type.shape[0]
    block_cols: gl.constexpr = x_desc.block_type.shape[1]
    row = gl.program_id(0) * block_rows
    count = gl.cdiv(x_desc.shape[1], block_cols)

    # --8<-- [start:stages]
    tiles = gl.allocate_shared_memory(
        x_desc.dtype, [2, block_rows, block_cols], x_desc.layout
    )
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(2):
        mbarrier.init(full.index(s), count=1)
    # --8<-- [end:stages]

    # --8<-- [start:loop]
    load(x_desc, row, 0, count, tiles, full)
    for i in range(count):
        # Tile i + 1 takes the place of tile i - 1, once that has been read.
        # --8<-- [line:free]
        tma.store_wait(0)
        load(x_desc, row, i + 1, count, tiles, full)
        # --8<-- [line:phase]
        mbarrier.wait(full.index(i % 2), i // 2 & 1)
        col = i * block_cols
        tma.async_copy_shared_to_global(y_desc, [row, col], tiles.index(i % 2))
    tma.store_wait(0)
    # --8<-- [end:loop]


# --8<-- [end:pipelined]
# --8<-- [start:launch]
def copy(
    x: torch.Tensor, *, block_rows: int = 64, block_cols: int = 64, strips: bool = False
) -> torch.Tensor:
    """A copy of x, by the TMA unit of a Hopper GPU.

    Args:
        x: [rows, cols], float16, bfloat16 or float32. The last stride is 1; the other
            one and the address are multiples of 16 bytes.
        block_rows: rows of a tile, a power of two from 8 to 128.
        block_cols: columns of a tile, 64 or 128.
        strips: one program copies a strip of tiles, in two stages, instead of one tile.

    Returns:
        [rows, cols], dtype of x; its rows begin at multiples of 16 bytes.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    size = x.element_size()
    odd = x.stride(1) != 1 or x.stride(0) * size % 16 or x.data_ptr() % 16
    if odd and x.numel():
        right = "1 at the end, the other and the address multiples of 16 bytes"
        raise ValueError(f"x has strides {x.stride()}; it must have {right}")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError("x requires a gradient; detach it or use no_grad")

    # --8<-- [start:descriptors]
    rows, cols = x.shape
    # The unit may fill the last 16 bytes of a row: they belong to y.
    padded = triton.cdiv(cols * size, 16) * 16 // size
    y = torch.empty((rows, padded), dtype=x.dtype, device=x.device)[:, :cols]
    if y.numel() == 0:  # a descriptor cannot be of an empty tensor
        return y
    block = [block_rows, block_cols]
    # --8<-- [line:layout]
    layout = gl.NVMMASharedLayout(128, element_bitwidth=8 * size, rank=2)
    x_desc, y_desc = (
        TensorDescriptor.from_tensor(each, block, layout) for each in (x, y)
    )
    # --8<-- [end:descriptors]
    programs = triton.cdiv(rows, block_rows)
    if not strips:
        programs *= triton.cdiv(cols, block_cols)
    with torch.cuda.device_of(x):
        kernel = strip_kernel if strips else tile_kernel
        kernel[(programs,)](x_desc, y_desc, num_warps=1)
    return y


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        x = torch.randn(1000, 200, device="cuda")
        for strips in (False, True):
            print(f"strips={strips}: equal is {torch.equal(copy(x, strips=strips), x)}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
