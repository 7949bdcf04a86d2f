"""Vector addition for vectors of any strides."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, stride_x, stride_y, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    offs = program * BLOCK + tl.arange(0, BLOCK)
    mask = offs < size
    x = tl.load(x_ptr + offs * stride_x, mask, other=0.0)
    y = tl.load(y_ptr + offs * stride_y, mask, other=0.0)
    tl.store(out_ptr + offs, x + y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def add(x: torch.Tensor, y: torch.Tensor, *, block: int = 1024) -> torch.Tensor:
    """x + y, one program per block of elements.

    Args:
        x: [size], float16, bfloat16, float32 or float64, any stride.
        y: [size], dtype and device of x, any stride.
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
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise ValueError(
                f"{name} requires a gradient, which this kernel would lose; "
                "use torch.no_grad() or detach"
            )

    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    size = x.numel()
    grid = (triton.cdiv(size, block),)
    with torch.cuda.device_of(x):
        add_kernel[grid](x, y, out, size, x.stride(0), y.stride(0), BLOCK=block)
    return out


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = torch.randn(1000, 100, device=device)
    column, row = table[:100, 7], table[7]
    error = (add(column, row) - (column + row)).abs().max().item()
    print(f"{device}: strides {column.stride(0)} and {row.stride(0)}")
    print(f"largest difference {error:.1e}")
# --8<-- [end:demo]
