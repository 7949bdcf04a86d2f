"""Wrong on purpose: vector addition without a mask leaves its tensors."""

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
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    offs = program * BLOCK + tl.arange(0, BLOCK)
    # Wrong: the last program goes on past the last element.
    x = tl.load(x_ptr + offs * stride_x)
    y = tl.load(y_ptr + offs * stride_y)
    tl.store(out_ptr + offs * stride_out, x + y)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def add(
    x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, *, block: int = 1024
) -> None:
    """A wrong x + y: right only where size is a multiple of block.

    Args:
        x: [size], float16, bfloat16, float32 or float64, any stride, on a GPU (or on
            the CPU under TRITON_INTERPRET=1, except bfloat16).
        y: [size], dtype and device of x, any stride.
        out: [size], dtype and device of x, any stride: receives the sum. Up to
            block - 1 elements behind it are overwritten too.
        block: elements per program, a power of two from 1 to 65536.

    Raises:
        ValueError: x, y, out or block is not one of the above.
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
    for name, other in (("y", y), ("out", out)):
        if (other.shape, other.dtype, other.device) != (x.shape, x.dtype, x.device):
            raise ValueError(
                f"{name} is {list(other.shape)} {other.dtype} on {other.device}; "
                f"it must be as x: {list(x.shape)} {x.dtype} on {x.device}"
            )
    if block not in [2**i for i in range(17)]:
        raise ValueError(f"block is {block}; it must be a power of two from 1 to 65536")

    if x.numel() == 0:
        return
    add_kernel[(triton.cdiv(x.numel(), block),)](
        x,
        y,
        out,
        *x.stride(),
        *y.stride(),
        *out.stride(),
        BLOCK=block,
    )


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
