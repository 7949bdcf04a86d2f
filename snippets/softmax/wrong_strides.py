"""Wrong on purpose: the output is written with the strides of the input.

Where y is not laid out as x is, rows land in the wrong place, the last ones outside y.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_xr, stride_xc, cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    mask = offs < cols
    x_ptrs = x_ptr + row * stride_xr + offs * stride_xc
    x = tl.load(x_ptrs, mask, other=float("-inf")).to(tl.float32)
    m_i = tl.max(x, axis=0)
    numerator = tl.exp(x - m_i)
    l_i = tl.sum(numerator, axis=0)
    y = numerator / l_i
    # Wrong: y has strides of its own.
    # --8<-- [line:store]
    tl.store(y_ptr + row * stride_xr + offs * stride_xc, y, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """A wrong softmax of x, [rows, cols]: of a sliced x, y has no gaps."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    with torch.cuda.device_of(x):
        softmax_kernel[(rows,)](x, y, *x.stride(), cols, triton.next_power_of_2(cols))
    return y


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # The row stride of an expanded x is 0: every row is written to row 0 of y.
    x = torch.randn(1, 1000, device=device).expand(64, 1000)
    y = softmax(x)
    error = (y - torch.softmax(x.double(), dim=-1))[0].abs().max().item()
    print(f"{device}: largest error {error:.1e} in row 0")
    right = ((y.sum(dim=-1) - 1).abs() < 1e-3).sum().item()
    print(f"rows that sum to 1: {right} of 64")
    # A sliced x would send rows past the end of y, so it is only counted here.
    x = torch.randn(64, 150, device=device)[:, :100]
    last = 63 * x.stride(0)
    print(f"sliced x: row 63 would start at element {last} of {x.numel()}")
# --8<-- [end:demo]
