"""Wrong on purpose: vector addition without a mask leaves its tensors.

Up to block - 1 elements behind the output are overwritten.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    offs = program * BLOCK + tl.arange(0, BLOCK)
    # Wrong: the last program goes on past the last element.
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x + y)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, *, block: int = 1024):
    """A wrong out = x + y, [size] each: right only where block divides size."""
    with torch.cuda.device_of(x):
        add_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, BLOCK=block)


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Each vector is the front of a longer one, so what is touched is ours.
    x, y, out = (torch.full((1024,), value, device=device) for value in (1.0, 2.0, 0.0))
    add(x[:1000], y[:1000], out[:1000])
    error = (out[:1000] - 3).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
    print(f"elements overwritten behind out: {(out[1000:] != 0).sum().item()}")
# --8<-- [end:demo]
