"""The first kernel of your own: x * 2 + 1."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def affine_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    offs = program * BLOCK + tl.arange(0, BLOCK)
    mask = offs < size
    x = tl.load(x_ptr + offs, mask, other=0.0)
    tl.store(out_ptr + offs, x * 2 + 1, mask)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def affine(x: torch.Tensor, *, block: int = 1024) -> torch.Tensor:
    """x * 2 + 1, one program per block of elements.

    Args:
        x: any shape, float16, bfloat16, float32 or float64, contiguous.
        block: elements per program, a power of two.

    Returns:
        Shape and dtype of x, contiguous.

    Raises:
        ValueError: x is none of the above, or requires a gradient.
    """
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if not x.is_contiguous():
        raise ValueError(f"x has strides {x.stride()}; it must be contiguous")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )
    out = torch.empty_like(x)
    size = x.numel()
    grid = (triton.cdiv(size, block),)
    with torch.cuda.device_of(x):
        affine_kernel[grid](x, out, size, BLOCK=block)
    return out


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(1000, device=device)
    print(f"{device}: largest difference {(affine(x) - (x * 2 + 1)).abs().max():.1e}")
# --8<-- [end:demo]
