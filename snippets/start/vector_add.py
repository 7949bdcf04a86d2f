"""Vector addition: programs, offsets and a mask."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    # --8<-- [line:program]
    program = tl.program_id(0).to(tl.int64)
    # --8<-- [line:offsets]
    offs = program * BLOCK + tl.arange(0, BLOCK)
    # --8<-- [line:mask]
    mask = offs < size
    # --8<-- [line:load]
    x = tl.load(x_ptr + offs, mask, other=0.0)
    y = tl.load(y_ptr + offs, mask, other=0.0)
    # --8<-- [line:store]
    tl.store(out_ptr + offs, x + y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def add(x: torch.Tensor, y: torch.Tensor, *, block: int = 1024) -> torch.Tensor:
    """x + y, one program per block of elements.

    Args:
        x: [size], float16, bfloat16, float32 or float64, contiguous.
        y: [size], dtype and device of x, contiguous.
        block: elements per program, a power of two.

    Returns:
        [size], dtype of x, contiguous.

    Raises:
        ValueError: x or y is not one of the above, or requires a gradient.
    """
    if x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 1: [size]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if (y.shape, y.dtype, y.device) != (x.shape, x.dtype, x.device):
        raise ValueError(
            f"y is {list(y.shape)} {y.dtype} on {y.device}; "
            f"it must be as x: {list(x.shape)} {x.dtype} on {x.device}"
        )
    for name, tensor in (("x", x), ("y", y)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has stride {tensor.stride(0)}; it must be 1")
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise ValueError(
                f"{name} requires a gradient, which this kernel would lose; "
                "use torch.no_grad() or detach"
            )

    # --8<-- [start:grid]
    # --8<-- [line:room]
    out = torch.empty_like(x)
    # --8<-- [line:programs]
    size = x.numel()
    grid = (triton.cdiv(size, block),)
    with torch.cuda.device_of(x):
        # --8<-- [line:start]
        add_kernel[grid](x, y, out, size, BLOCK=block)
    # --8<-- [end:grid]
    return out


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = torch.randn(2, 100_000, device=device)
    error = (add(x, y) - (x.double() + y.double())).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
