"""Dropout whose mask is drawn from a seed, in both passes, and stored in neither."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:draw]
@triton.jit
def draw(seed, counter):
    """Eight numbers from 0 to 65535 for each counter: [n] -> [8 * n], int32."""
    low, high = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    # --8<-- [line:philox]
    r0, r1, r2, r3 = tl.philox(seed, low, high, high * 0, high * 0)
    # --8<-- [line:words]
    words = tl.interleave(tl.interleave(r0, r2), tl.interleave(r1, r3))
    # --8<-- [line:halves]
    return tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32)


# --8<-- [end:draw]


# --8<-- [start:kernel]
@triton.jit(do_not_specialize=["seed", "threshold"])
def dropout_kernel(
    x_ptr, y_ptr, seed, threshold, size, inner, strides,
    COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if seed.dtype.is_ptr():
        seed = tl.load(seed)
    # --8<-- [line:index]
    first = tl.program_id(0).to(tl.int64) * BLOCK
    index = first + tl.arange(0, BLOCK)
    # --8<-- [line:counter]
    counter = first // 8 + tl.arange(0, BLOCK // 8)
    # --8<-- [start:place]
    # Where in memory: the index along each axis of x, the innermost first.
    offs, rest = tl.zeros_like(index), index
    for axis in tl.static_range(len(inner)):
        offs += rest % inner[axis] * strides[axis]
        rest = rest // inner[axis]
    offs += rest * strides[len(inner)]
    # --8<-- [end:place]
    mask = index < size
    x = tl.load(x_ptr + offs, mask, other=0.0).to(COMPUTE)

    # --8<-- [line:keep]
    keep = draw(seed, counter) >= threshold
    # --8<-- [line:scale]
    scale = 65536 / (65536 - threshold).to(COMPUTE)
    y = tl.where(keep, x * scale, 0.0)
    tl.store(y_ptr + index, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:axes]
def axes(x: torch.Tensor) -> list[tuple[int, int]]:
    """Size and stride of each axis, innermost first; neighbours merged if they can."""
    found = []
    for size, stride in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * size, found[-1][1])
        elif size != 1:
            found.append((size, stride))
    return found or [(1, 1)]


# --8<-- [end:axes]


# --8<-- [start:function]
class Dropout(torch.autograd.Function):
    """Saves no tensor of x's size: the backward pass draws the same mask again."""

    @staticmethod
    def forward(ctx, x, threshold, seed, block):
        # Saved as a tensor, a seed that changes before the backward pass is an error.
        is_tensor = isinstance(seed, torch.Tensor)
        ctx.save_for_backward(*([seed] if is_tensor else []))
        ctx.rest = threshold, None if is_tensor else seed, block
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        sizes, strides = zip(*axes(x), strict=True)
        with torch.cuda.device_of(x):
            dropout_kernel[(triton.cdiv(x.numel(), block),)](
                x, y, seed, threshold, x.numel(), sizes[:-1], strides,
                COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
                BLOCK=block, num_warps=max(1, min(8, block // 256)),
            )  # fmt: skip
        return y

    # --8<-- [start:backward]
    @staticmethod
    def backward(ctx, dy):
        threshold, seed, block = ctx.rest
        seed = ctx.saved_tensors[0] if seed is None else seed
        # --8<-- [line:again]
        return Dropout.apply(dy, threshold, seed, block), None, None, None

    # --8<-- [end:backward]


# --8<-- [end:function]


# --8<-- [start:launch]
def check(x: torch.Tensor, p: float, seed: int | torch.Tensor) -> None:
    """Raise a ValueError that names what the kernel cannot take."""
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}; it must be from 0 to 1")
    if isinstance(seed, torch.Tensor):
        right = (seed.dtype, seed.numel(), seed.device) == (torch.int64, 1, x.device)
    else:
        right = isinstance(seed, int) and 0 <= seed < 2**63
    if not right:
        wanted = f"an int from 0 to 2**63 - 1, or one int64 on {x.device}"
        raise ValueError(f"seed is {seed!r}; it must be {wanted}")


def dropout(
    x: torch.Tensor, *, p: float, seed: int | torch.Tensor, block: int = 4096
) -> torch.Tensor:
    """x / (1 - p) or, with probability p, 0; differentiable as often as you like.

    Whether an element stays depends on the seed and on its index in x.flatten(), and
    on nothing else: not on strides, dtype or tile.

    Args:
        x: any shape and strides, float16, bfloat16, float32 or float64, on a GPU.
        p: the probability of dropping an element, from 0 to 1; it is rounded to a
            multiple of 2^-16, and so is the 1 - p that is divided by.
        seed: an int from 0 to 2^63 - 1, or an int64 tensor of one element on the
            device of x, which is read when the kernel runs. Take another for each call.
        block: elements of a program, a power of two, 8 or more.

    Returns:
        shape and dtype of x, contiguous. A dropped element is 0, even a NaN.

    Raises:
        ValueError: x, p or seed is not one of the above.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011 (Philox).
    """
    check(x, p, seed)
    return Dropout.apply(x, round(p * 65536), seed, block)


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(200, 1000, device=device, requires_grad=True)
    # --8<-- [start:call]
    y = dropout(x, p=0.1, seed=2026)
    y.sum().backward()
    # --8<-- [end:call]
    zeros, mean = (y == 0).double().mean().item(), y.double().mean().item()
    print(f"{device}: {zeros:.1%} are 0, the mean is {mean:.2f} as before")
    print(f"the backward pass drew the same mask: {torch.equal(x.grad, y)}")
# --8<-- [end:demo]
