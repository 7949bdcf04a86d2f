"""Wrong on purpose: the lanes past the end of a row enter the sum.

The rows of x are contiguous and float32. They come out right only where their length is
a power of two.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS)
    mask = offs < cols
    # Wrong: no `other`. What the lanes past the end hold is undefined.
    # --8<-- [line:load]
    x = tl.load(x_ptr + row * cols + offs, mask).to(tl.float32)
    m_i = tl.max(x, axis=0)
    numerator = tl.exp(x - m_i)
    # --8<-- [line:sum]
    l_i = tl.sum(numerator, axis=0)
    y = numerator / l_i
    tl.store(y_ptr + row * cols + offs, y, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """A wrong softmax of x, [rows, cols]: right only where cols is a power of two."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    with torch.cuda.device_of(x):
        softmax_kernel[(rows,)](x, y, cols, triton.next_power_of_2(cols))
    return y


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = 1 + torch.rand(64, 200, device=device)
    y = softmax(x)
    error = (y - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, which looks small")
    print(f"sum of row 0: {y[0].sum().item():.3f}")
    print(f"sum of row 0 of softmax(x - 100): {softmax(x - 100)[0].sum().item():.3f}")
# --8<-- [end:demo]
