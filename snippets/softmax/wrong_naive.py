"""Wrong on purpose: softmax by its definition, which overflows.

The rows of x are contiguous. exp is rounded to the dtype of x, as it is in a program
that stays in that dtype: beyond its range, and where all terms round to 0, y is NaN.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, COMPUTE: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS)
    mask = offs < cols
    x = tl.load(x_ptr + row * cols + offs, mask, other=float("-inf"))
    # Wrong: no maximum is subtracted, so exp(x) leaves the range of the dtype of x.
    numerator = tl.exp(x.to(COMPUTE)).to(x.dtype).to(COMPUTE)
    l_i = tl.sum(numerator, axis=0)
    y = numerator / l_i
    tl.store(y_ptr + row * cols + offs, y, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """A wrong softmax of x, [rows, cols]: right only while exp(x) fits in its dtype."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    compute = tl.float64 if x.dtype == torch.float64 else tl.float32
    with torch.cuda.device_of(x):
        softmax_kernel[(rows,)](x, y, cols, compute, triton.next_power_of_2(cols))
    return y


# --8<-- [end:launch]
# --8<-- [start:threshold]
def overflow_threshold(dtype: torch.dtype) -> float:
    """The smallest value of dtype whose softmax, alone in its row, is not finite."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    low, high = 0.0, 1000.0
    while True:
        # The value of dtype nearest to the middle; low or high when none is between.
        x = torch.tensor([[(low + high) / 2]], dtype=dtype, device=device)
        if x.item() in (low, high):
            return high
        low, high = (x.item(), high) if softmax(x).isfinite() else (low, x.item())


# --8<-- [end:threshold]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    for shift in (0, 100):
        error = softmax(x + shift) - torch.softmax(x.double(), dim=-1)
        print(f"{device}: x + {shift}, largest error {error.abs().max().item():.1e}")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        print(f"{dtype} overflows from {overflow_threshold(dtype):.6g}")
# --8<-- [end:demo]
