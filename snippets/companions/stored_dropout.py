"""Dropout with a stored mask: one byte for each element says whether it stays."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def dropout_kernel(
    x_ptr, keep_ptr, y_ptr, size,
    SCALE: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < size
    x = tl.load(x_ptr + offs, mask, other=0.0).to(COMPUTE)
    # --8<-- [line:keep]
    keep = tl.load(keep_ptr + offs, mask, other=0)
    # --8<-- [line:scale]
    y = tl.where(keep != 0, x * SCALE, 0.0)
    tl.store(y_ptr + offs, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:checks]
def check(x: torch.Tensor, keep: torch.Tensor, p: float) -> None:
    """Raise a ValueError that names what the kernel cannot take."""
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if (keep.dtype, keep.device) != (torch.bool, x.device):
        found = f"{keep.dtype} on {keep.device}"
        raise ValueError(f"keep is {found}; it must be torch.bool on {x.device}, as x")
    if keep.shape != x.shape:
        shapes = f"{list(keep.shape)}; it must be x's {list(x.shape)}"
        raise ValueError(f"keep has shape {shapes}")
    for name, tensor in (("x", x), ("keep", keep)):
        if not tensor.is_contiguous():
            strides = f"strides {tensor.stride()}"
            raise ValueError(f"{name} has {strides}; it must be contiguous")
    if torch.is_grad_enabled() and x.requires_grad:
        lost = "requires a gradient, which this kernel would lose"
        raise ValueError(f"x {lost}; use torch.no_grad() or detach it")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}; it must be from 0 to 1")


# --8<-- [end:checks]


# --8<-- [start:launch]
def dropout(
    x: torch.Tensor, keep: torch.Tensor, *, p: float, block: int = 4096
) -> torch.Tensor:
    """x / (1 - p) where `keep` is true, and 0 elsewhere.

    The gradient is the same function of the gradient: dx = dropout(dy, keep, p=p).

    Args:
        x: any shape, float16, bfloat16, float32 or float64, contiguous.
        keep: bool, shape and device of x, contiguous; true with probability 1 - p.
        p: the probability of dropping an element, from 0 to 1. The kernel is compiled
            for it.
        block: elements of a program, a power of two.

    Returns:
        shape and dtype of x, contiguous.

    Raises:
        ValueError: x, keep or p is not one of the above, or x requires a gradient.

    Source: Srivastava et al., "Dropout", 2014. They scale the weights by 1 - p when
    the network is tested; dividing while it is trained has the same expectation.
    """
    check(x, keep, p)
    y = torch.empty_like(x)
    with torch.cuda.device_of(x):
        dropout_kernel[(triton.cdiv(x.numel(), block),)](
            x, keep, y, x.numel(),
            SCALE=1 / (1 - p) if p < 1 else 0.0,
            COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK=block, num_warps=max(1, min(8, block // 256)),
        )  # fmt: skip
    return y


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(200, 1000, device=device)
    # --8<-- [start:call]
    keep = torch.rand(x.shape, device=device) >= 0.1
    y = dropout(x, keep, p=0.1)
    # --8<-- [end:call]
    zeros, mean = (y == 0).double().mean().item(), y.double().mean().item()
    print(f"{device}: {zeros:.1%} are 0, the mean is {mean:.2f} as before")
    print(f"kept until the backward pass: {keep.nbytes:,} bytes, x has {x.nbytes:,}")
# --8<-- [end:demo]
