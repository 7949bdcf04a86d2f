"""Softmax as a reduction of pairs (maximum, sum): over tiles, then in a tree."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
# --8<-- [start:merge]
@triton.jit
def merge(m_a, l_a, m_b, l_b):
    """The pair of two parts of a row, from the pair (maximum, sum) of each."""
    # --8<-- [line:max]
    m_i = tl.maximum(m_a, m_b)
    # Both parts all -inf: subtract 0, because (-inf) - (-inf) is NaN.
    shift = tl.where(m_i == float("-inf"), 0.0, m_i)
    # --8<-- [line:rescale]
    l_i = l_a * tl.exp(m_a - shift) + l_b * tl.exp(m_b - shift)
    return m_i, l_i


# --8<-- [end:merge]


@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)

    # --8<-- [start:pass1]
    # Pass 1: lane j holds the pair of columns j, j + BLOCK_COLS, and so on.
    m_i = tl.full((BLOCK_COLS,), float("-inf"), COMPUTE)
    l_i = tl.full((BLOCK_COLS,), 0.0, COMPUTE)
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # One value is the pair (x, 1); -inf adds nothing: it is (-inf, 0).
        l_x = tl.where(x == float("-inf"), 0.0, 1.0).to(COMPUTE)
        # --8<-- [line:lanes]
        m_i, l_i = merge(m_i, l_i, x, l_x)
    # --8<-- [line:tree]
    m_i, l_i = tl.reduce((m_i, l_i), 0, merge)
    # --8<-- [end:pass1]

    # Pass 2: every term with the final maximum and denominator.
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # --8<-- [line:output]
        y = tl.exp(x - m_i) / l_i
        tl.store(y_ptr + row * stride_yr + (start + offs) * stride_yc, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, block_cols: int = 256) -> torch.Tensor:
    """Softmax over the last dimension, one program per row, one pair per lane.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        block_cols: columns per tile, a power of two.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, section 3.1 (parallel online normalizer).
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
        softmax_kernel[(rows,)](
            x,
            y,
            *x.stride(),
            *y.stride(),
            cols,
            COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK_COLS=block_cols,
        )
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(4, 3000, device=device)
    error = (softmax(x) - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
