"""Wrong on purpose: a row that starts with a tile of -inf becomes NaN.

The rows of x are contiguous and float32. online.py has the guard.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols: tl.int64, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m_i = tl.full((), float("-inf"), tl.float32)
    l_i = tl.full((), 0.0, tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        offs = start + tl.arange(0, BLOCK_COLS)
        x = tl.load(x_ptr + row * cols + offs, offs < cols, other=float("-inf"))
        m_new = tl.maximum(m_i, tl.max(x.to(tl.float32), axis=0))
        # Wrong: while all is -inf, m_i - m_new is (-inf) - (-inf), which is NaN.
        # --8<-- [line:rescale]
        l_i = l_i * tl.exp(m_i - m_new)
        l_i = l_i + tl.sum(tl.exp(x.to(tl.float32) - m_new), axis=0)
        m_i = m_new
    for start in range(0, cols, BLOCK_COLS):
        offs = start + tl.arange(0, BLOCK_COLS)
        x = tl.load(x_ptr + row * cols + offs, offs < cols, other=float("-inf"))
        y = tl.exp(x.to(tl.float32) - m_i) / l_i
        tl.store(y_ptr + row * cols + offs, y, offs < cols)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, block_cols: int = 1024) -> torch.Tensor:
    """A wrong softmax of x, [rows, cols]: NaN where a row's first tile is all -inf."""
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
    x[0, :1024] = float("-inf")
    y = softmax(x)
    expected = torch.softmax(x.double(), dim=-1)
    error = (y - expected)[1:].abs().max().item()
    print(f"{device}: largest error {error:.1e} in the rows without -inf")
    nans = [t[0].isnan().sum().item() for t in (y, expected)]
    print(f"NaN in row 0: {nans[0]} of 3000; torch.softmax has {nans[1]}")
# --8<-- [end:demo]
