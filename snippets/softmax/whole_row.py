"""Softmax at the speed of a copy: whole rows in registers, 32 bytes a thread."""

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
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    mask = (offs_r < rows) & (offs_c < cols)
    # --8<-- [line:load]
    x = tl.load(
        x_ptr + offs_r * stride_xr + offs_c * stride_xc,
        mask,
        other=float("-inf"),
    ).to(COMPUTE)

    # --8<-- [line:max]
    m_i = tl.max(x, axis=1, keep_dims=True)
    # exp(z) is 2^(z log2(e)), and the chip has an instruction for powers of 2.
    # --8<-- [line:numerator]
    numerator = tl.exp2((x - m_i) * 1.4426950408889634)
    l_i = tl.sum(numerator, axis=1, keep_dims=True)
    # One division for each row, one multiplication for each element.
    # --8<-- [line:output]
    y = numerator * (1.0 / l_i)
    tl.store(y_ptr + offs_r * stride_yr + offs_c * stride_yc, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:tile]
def tile(cols: int, itemsize: int) -> tuple[int, int, int]:
    """The tile of a program: (BLOCK_ROWS, BLOCK_COLS, num_warps).

    A tile has whole rows and at least 4 KiB. A thread takes 32 bytes of it, two loads
    of 16 bytes, until a program has the 32 warps that are the limit.
    """
    block_cols = triton.next_power_of_2(cols)
    block_rows = max(1, 4096 // (block_cols * itemsize))
    num_warps = min(32, block_rows * block_cols * itemsize // 1024)
    return block_rows, block_cols, num_warps


# --8<-- [end:tile]


# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension, whole rows in the registers of one program.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides; at
            most 65536 columns. Fast up to 32768 columns: beyond, registers spill.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, algorithm 2 (safe softmax), on one block.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    block_rows, block_cols, num_warps = tile(cols, x.element_size())
    with torch.cuda.device_of(x):
        softmax_kernel[(triton.cdiv(rows, block_rows),)](
            x,
            y,
            *x.stride(),
            *y.stride(),
            rows,
            cols,
            COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK_ROWS=block_rows,
            BLOCK_COLS=block_cols,
            num_warps=num_warps,
        )
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    error = (softmax(x) - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
