"""A fixed number of programs that walk over all rows, loading the next ones ahead."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    rows,
    cols,
    COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
    NUM_STAGES: tl.constexpr,
):
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    first = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    step = tl.num_programs(0).to(tl.int64) * BLOCK_ROWS
    # With NUM_STAGES = 4, the loads run up to three tiles ahead of the arithmetic.
    # --8<-- [line:walk]
    for row in tl.range(first, rows, step, num_stages=NUM_STAGES):
        offs_r = (row + tl.arange(0, BLOCK_ROWS).to(tl.int64))[:, None]
        mask = (offs_r < rows) & (offs_c < cols)
        x = tl.load(
            x_ptr + offs_r * stride_xr + offs_c * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        m_i = tl.max(x, axis=1, keep_dims=True)
        numerator = tl.exp(x - m_i)
        l_i = tl.sum(numerator, axis=1, keep_dims=True)
        # --8<-- [line:output]
        y = numerator / l_i
        tl.store(y_ptr + offs_r * stride_yr + offs_c * stride_yc, y, mask)


# --8<-- [end:kernel]

# --8<-- [start:programs]
SHARED_BYTES = 192 * 1024  # of shared memory, for tiles loaded ahead


def resident_programs(
    kernel: triton.compiler.CompiledKernel, device: torch.device
) -> int:
    """How many programs of a compiled kernel the GPU holds at a time.

    A multiprocessor holds as many as its registers, its threads and its shared memory
    allow, and 32 at most.
    """
    gpu = torch.cuda.get_device_properties(device)
    warps = kernel.metadata.num_warps
    # Registers are handed out to a warp in units of 256.
    registers = triton.cdiv(kernel.n_regs * gpu.warp_size, 256) * 256
    each = min(
        32,
        gpu.regs_per_multiprocessor // registers // warps,
        gpu.max_threads_per_multi_processor // (gpu.warp_size * warps),
        # A program takes 1 KiB besides its own.
        gpu.shared_memory_per_multiprocessor // (kernel.metadata.shared + 1024),
    )
    return gpu.multi_processor_count * each


# --8<-- [end:programs]


# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, programs: int | None = None) -> torch.Tensor:
    """Softmax over the last dimension by as many programs as the GPU holds.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides; at
            most 65536 columns.
        programs: how many share the rows, at least 1; if None, as many as the GPU
            holds at a time.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x or programs is not one of the above, or x requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, algorithm 2 (safe softmax), on one block.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")
    if programs is not None and programs < 1:
        raise ValueError(f"programs is {programs}; it must be at least 1")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    # Whole rows, at least 4 KiB; 16 warps at most leave room for 128 registers each.
    block_cols = triton.next_power_of_2(cols)
    block_rows = max(1, 4096 // (block_cols * x.element_size()))
    tile_bytes = block_rows * block_cols * x.element_size()
    arguments = (x, y, *x.stride(), *y.stride(), rows, cols)
    constants = {
        "COMPUTE": tl.float64 if x.dtype == torch.float64 else tl.float32,
        "BLOCK_ROWS": block_rows,
        "BLOCK_COLS": block_cols,
        # The tiles ahead wait in shared memory.
        "NUM_STAGES": min(4, 1 + SHARED_BYTES // tile_bytes),
        "num_warps": min(16, tile_bytes // 1024),
    }
    with torch.cuda.device_of(x):
        if programs is None:
            compiled = softmax_kernel.warmup(*arguments, grid=(1,), **constants)
            _ = compiled.run  # Loads the kernel: now its registers are known.
            programs = resident_programs(compiled, x.device)
        grid = (min(programs, triton.cdiv(rows, block_rows)),)
        softmax_kernel[grid](*arguments, **constants)
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    y = softmax(x, programs=None if device == "cuda" else 4)
    error = (y - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
