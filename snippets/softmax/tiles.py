"""Online softmax in tiles of rows and columns: each program takes several rows."""

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
    cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [start:offsets]
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    # --8<-- [end:offsets]

    # --8<-- [start:pass1]
    # Pass 1: m_i is the maximum so far, l_i the sum of exp(x - m_i) so far.
    m_i = tl.full((BLOCK_ROWS, 1), float("-inf"), COMPUTE)
    l_i = tl.full((BLOCK_ROWS, 1), 0.0, COMPUTE)
    for start in range(0, cols, BLOCK_COLS):
        mask = (offs_r < rows) & (start + offs_c < cols)
        x = tl.load(
            x_ptr + offs_r * stride_xr + (start + offs_c) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # --8<-- [line:max]
        m_new = tl.maximum(m_i, tl.max(x, axis=1, keep_dims=True))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:rescale]
        l_i = l_i * tl.exp(m_i - shift)
        # --8<-- [line:sum]
        l_i = l_i + tl.sum(tl.exp(x - shift), axis=1, keep_dims=True)
        m_i = m_new
    # --8<-- [end:pass1]

    # --8<-- [start:pass2]
    # Pass 2: every term with the final maximum and denominator.
    for start in range(0, cols, BLOCK_COLS):
        mask = (offs_r < rows) & (start + offs_c < cols)
        x = tl.load(
            x_ptr + offs_r * stride_xr + (start + offs_c) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # --8<-- [line:output]
        y = tl.exp(x - m_i) / l_i
        tl.store(y_ptr + offs_r * stride_yr + (start + offs_c) * stride_yc, y, mask)
    # --8<-- [end:pass2]


# --8<-- [end:kernel]


# --8<-- [start:launch]
def softmax(
    x: torch.Tensor, *, block_rows: int = 4, block_cols: int = 256
) -> torch.Tensor:
    """Softmax over the last dimension, one program per block_rows rows.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        block_rows: rows per tile, a power of two.
        block_cols: columns per tile, a power of two.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, algorithm 3, on several rows at once.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
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
        )
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 3000, device=device)
    error = (softmax(x) - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
