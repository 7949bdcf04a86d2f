"""Wrong on purpose: softmax by its definition, which overflows."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
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
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    mask = offs < cols
    x = tl.load(
        x_ptr + row * stride_xr + offs * stride_xc,
        mask,
        other=float("-inf"),
    )

    # Wrong: no maximum is subtracted, so exp(x) leaves the range of the dtype of x.
    numerator = tl.exp(x.to(COMPUTE)).to(x.dtype).to(COMPUTE)
    l_i = tl.sum(numerator, axis=0)
    y = numerator / l_i
    tl.store(y_ptr + row * stride_yr + offs * stride_yc, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """A wrong softmax: right only while exp(x) fits in the dtype of x.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides, on a GPU
            (or on the CPU under TRITON_INTERPRET=1); at most 65536 columns, so
            that a row fits in one block.

    Returns:
        [rows, cols], dtype of x, contiguous. NaN where exp(x) overflows, and in a row
        whose every exp(x) is 0. Triton computes exp in float32 or float64; here it is
        rounded to the dtype of x, as it is in a program that stays in that dtype.

    Raises:
        ValueError: x is not one of the above.

    Source: the definition; one_row.py subtracts the maximum first.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"x is {x.dtype}; it must be float16, bfloat16, float32 or float64"
        )
    if not x.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"x is on {x.device}; it must be on a GPU, or set TRITON_INTERPRET=1"
        )
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
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


# --8<-- [start:threshold]
def overflow_threshold(dtype: torch.dtype) -> float:
    """The smallest value of `dtype` whose softmax, alone in its row, is not finite.

    Args:
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        That value, found by bisection of the values of `dtype` between 0 and 1000.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    low, high = 0.0, 1000.0
    while True:
        # The value of dtype nearest to the middle; low or high when none is between.
        x = torch.tensor([[(low + high) / 2]], dtype=dtype, device=device)
        if x.item() in (low, high):
            return high
        if softmax(x).isfinite().item():
            low = x.item()
        else:
            high = x.item()


# --8<-- [end:threshold]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    for shift in (0, 100):
        y, expected = softmax(x + shift), torch.softmax(x.double(), dim=-1)
        error = (y - expected).abs().max().item()
        print(f"{device}: x + {shift}, largest error {error:.1e}")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        print(f"{dtype} overflows from {overflow_threshold(dtype):.6g}")
# --8<-- [end:demo]
