"""Wrong on purpose: the lanes past the end of a row count in its variance.

The rows of x are contiguous. Those lanes hold 0, so x - mean is -mean there.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, cols, EPS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS)
    mask = offs < cols
    x = tl.load(x_ptr + row * cols + offs, mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols
    # Wrong: past the end x is 0, and x - mean is not.
    # --8<-- [line:centred]
    centred = x - mean
    variance = tl.sum(centred * centred, axis=0) / cols
    y = centred / tl.sqrt(variance + EPS)
    weight = tl.load(weight_ptr + offs, mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offs, mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * cols + offs, y * weight + bias, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, eps: float = 1e-5
) -> torch.Tensor:
    """A wrong layer norm of x, [rows, cols]: right only if cols is a power of two."""
    rows, cols = x.shape
    y, block = torch.empty_like(x), triton.next_power_of_2(cols)
    with torch.cuda.device_of(x):
        layer_norm_kernel[(rows,)](x, weight, bias, y, cols, eps, block)
    return y


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weight, bias = torch.ones(1000, device=device), torch.zeros(1000, device=device)
    for mean in (0, 1, 10):
        x = torch.randn(64, 1000, device=device) + mean
        y = layer_norm(x, weight, bias)
        error = (y - torch.nn.functional.layer_norm(x.double(), (1000,))).abs().max()
        print(f"{device}: mean {mean}, largest error {error.item():.1e}")
# --8<-- [end:demo]
