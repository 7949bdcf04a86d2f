"""Softmax of a row that fits in one block: one program per row."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
# --8<-- [start:arguments]
@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [end:arguments]
    # --8<-- [start:load]
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    mask = offs < cols
    x = tl.load(
        x_ptr + row * stride_xr + offs * stride_xc,
        mask,
        other=float("-inf"),
    ).to(COMPUTE)
    # --8<-- [end:load]

    # --8<-- [start:compute]
    # --8<-- [line:max]
    m_i = tl.max(x, axis=0)
    # --8<-- [line:numerator]
    numerator = tl.exp(x - m_i)
    # --8<-- [line:sum]
    l_i = tl.sum(numerator, axis=0)
    # --8<-- [line:output]
    y = numerator / l_i
    tl.store(y_ptr + row * stride_yr + offs * stride_yc, y, mask)
    # --8<-- [end:compute]


# --8<-- [end:kernel]


# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension, one program and one block per row.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides; at
            most 65536 columns, so that a row fits in one block.

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
    with torch.cuda.device_of(x):
        softmax_kernel[(rows,)](
            x,
            y,
            *x.stride(),
            *y.stride(),
            cols,
            COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK_COLS=triton.next_power_of_2(cols),
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
