"""Copying a matrix tile by tile: two-dimensional offsets from strides."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def copy_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    rows,
    cols,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [line:rows]
    offs_r = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    # --8<-- [line:cols]
    offs_c = tl.program_id(1).to(tl.int64) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    # A column of row offsets and a row of column offsets: [BLOCK_ROWS, BLOCK_COLS].
    # --8<-- [line:addresses]
    x_ptrs = x_ptr + offs_r[:, None] * stride_xr + offs_c[None, :] * stride_xc
    y_ptrs = y_ptr + offs_r[:, None] * stride_yr + offs_c[None, :] * stride_yc
    # --8<-- [line:mask]
    mask = (offs_r[:, None] < rows) & (offs_c[None, :] < cols)
    x = tl.load(x_ptrs, mask, other=0.0)
    tl.store(y_ptrs, x, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def copy(
    x: torch.Tensor, *, block_rows: int = 32, block_cols: int = 64
) -> torch.Tensor:
    """A contiguous copy of x, one program per tile.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides (a
            transposed or sliced view, for instance).
        block_rows: rows per tile, a power of two.
        block_cols: columns per tile, a power of two. At most 65535 tiles fit side by
            side: the second axis of a grid ends there.

    Returns:
        [rows, cols], dtype of x, contiguous.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if x.shape[1] > 65535 * block_cols:
        raise ValueError(
            f"x has {x.shape[1]} columns; it must have at most 65535 * block_cols"
        )
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, block_rows), triton.cdiv(cols, block_cols))
    with torch.cuda.device_of(x):
        copy_kernel[grid](
            x,
            y,
            *x.stride(),
            *y.stride(),
            rows,
            cols,
            BLOCK_ROWS=block_rows,
            BLOCK_COLS=block_cols,
        )
    return y


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(300, 200, device=device).T
    print(f"{device}: strides {x.stride()} become {copy(x).stride()}")
    print(f"largest error {(copy(x) - x).abs().max().item():.1e}")
# --8<-- [end:demo]
