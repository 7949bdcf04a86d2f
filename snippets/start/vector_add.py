"""Vector addition: programs, offsets and a mask."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def add_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    stride_x,
    stride_y,
    stride_out,
    size,
    BLOCK: tl.constexpr,
):
    # --8<-- [line:program]
    program = tl.program_id(0).to(tl.int64)
    # --8<-- [line:offsets]
    offs = program * BLOCK + tl.arange(0, BLOCK)
    # --8<-- [line:mask]
    mask = offs < size
    # --8<-- [line:load]
    x = tl.load(x_ptr + offs * stride_x, mask, other=0.0)
    y = tl.load(y_ptr + offs * stride_y, mask, other=0.0)
    # --8<-- [line:store]
    tl.store(out_ptr + offs * stride_out, x + y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def add(x: torch.Tensor, y: torch.Tensor, *, block: int = 1024) -> torch.Tensor:
    """x + y, one program per block of elements.

    Args:
        x: [size], float16, bfloat16, float32 or float64, any stride, on a GPU (or on
            the CPU under TRITON_INTERPRET=1, except bfloat16).
        y: [size], dtype and device of x, any stride.
        block: elements per program, a power of two from 1 to 65536.

    Returns:
        [size], dtype of x, contiguous.

    Raises:
        ValueError: x, y or block is not one of the above.
    """
    if x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 1: [size]")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"x is {x.dtype}; it must be float16, bfloat16, float32 or float64"
        )
    if x.dtype == torch.bfloat16 and triton.knobs.runtime.interpret:
        raise ValueError(
            "x is bfloat16, whose bit patterns the interpreter would add; "
            "it must be on a GPU, or another dtype"
        )
    if not x.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"x is on {x.device}; it must be on a GPU, or set TRITON_INTERPRET=1"
        )
    if (y.shape, y.dtype, y.device) != (x.shape, x.dtype, x.device):
        raise ValueError(
            f"y is {list(y.shape)} {y.dtype} on {y.device}; "
            f"it must be as x: {list(x.shape)} {x.dtype} on {x.device}"
        )
    if block not in [2**i for i in range(17)]:
        raise ValueError(f"block is {block}; it must be a power of two from 1 to 65536")

    size = x.numel()
    out = torch.empty((size,), dtype=x.dtype, device=x.device)
    if size == 0:
        return out
    add_kernel[(triton.cdiv(size, block),)](
        x,
        y,
        out,
        *x.stride(),
        *y.stride(),
        *out.stride(),
        size,
        BLOCK=block,
    )
    return out


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = torch.randn(2, 100_000, device=device)
    error = (add(x, y) - (x.double() + y.double())).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
