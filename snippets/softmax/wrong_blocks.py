"""Wrong on purpose: the softmax of each block of a row, on its own.

The rows of x are contiguous and float32. A row sums to the number of its tiles.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols: tl.int64, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    # Wrong: each tile gets a maximum and a denominator of its own.
    # --8<-- [line:loop]
    for start in range(0, cols, BLOCK_COLS):
        offs = start + tl.arange(0, BLOCK_COLS)
        mask = offs < cols
        x = tl.load(x_ptr + row * cols + offs, mask, other=float("-inf"))
        m_i = tl.max(x.to(tl.float32), axis=0)
        numerator = tl.exp(x.to(tl.float32) - m_i)
        l_i = tl.sum(numerator, axis=0)
        # --8<-- [line:output]
        y = numerator / l_i
        tl.store(y_ptr + row * cols + offs, y, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, block_cols: int = 1024) -> torch.Tensor:
    """A wrong softmax of x, [rows, cols]: right only for rows of one tile."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    with torch.cuda.device_of(x):
        softmax_kernel[(rows,)](x, y, cols, block_cols)
    return y


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 3000, device=device)
    y = softmax(x)
    error = (y - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, sum of row 0: {y[0].sum().item():.3f}")
# --8<-- [end:demo]
