"""Softmax with its gradient: the backward pass is one fused kernel."""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable


# --8<-- [start:reference]
def reference_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """dx = y * (dy - delta); delta is the product of the rows of y and dy."""
    delta = (y * dy).sum(dim=-1, keepdim=True)
    return y * (dy - delta)


# --8<-- [end:reference]


# --8<-- [start:forward]
@triton.jit
def forward_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    m_i = tl.full((), float("-inf"), COMPUTE)
    l_i = tl.full((), 0.0, COMPUTE)
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l_i = l_i * tl.exp(m_i - shift)
        l_i = l_i + tl.sum(tl.exp(x - shift), axis=0)
        m_i = m_new
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        y = tl.exp(x - m_i) / l_i
        tl.store(y_ptr + row * stride_yr + (start + offs) * stride_yc, y, mask)


# --8<-- [end:forward]


# --8<-- [start:backward]
@triton.jit
def backward_kernel(
    y_ptr,
    dy_ptr,
    dx_ptr,
    stride_yr,
    stride_dyr,
    stride_dyc,
    stride_dxr,
    rows,
    cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    mask_r = offs_r < rows
    y_ptr += offs_r * stride_yr
    dy_ptr += offs_r * stride_dyr
    dx_ptr += offs_r * stride_dxr

    # The last tile stays in registers; it is the only one of a row that fits.
    last = (cols - 1) // BLOCK_COLS * BLOCK_COLS
    mask = mask_r & (last + offs_c < cols)
    y_last = tl.load(y_ptr + last + offs_c, mask, other=0.0).to(COMPUTE)
    dy_last = tl.load(dy_ptr + (last + offs_c) * stride_dyc, mask, other=0.0)
    dy_last = dy_last.to(COMPUTE)

    # --8<-- [line:delta]
    delta = tl.sum(y_last * dy_last, axis=1, keep_dims=True)
    for start in range(0, last, BLOCK_COLS):
        # --8<-- [line:keep]
        y = tl.load(
            y_ptr + start + offs_c, mask_r, other=0.0, eviction_policy="evict_last"
        ).to(COMPUTE)
        dy = tl.load(
            dy_ptr + (start + offs_c) * stride_dyc,
            mask_r,
            other=0.0,
            eviction_policy="evict_last",
        ).to(COMPUTE)
        delta += tl.sum(y * dy, axis=1, keep_dims=True)

    # --8<-- [line:dx]
    dx = y_last * (dy_last - delta)
    tl.store(dx_ptr + last + offs_c, dx, mask, cache_modifier=".cs")
    for start in range(0, last, BLOCK_COLS):
        # --8<-- [line:evict]
        y = tl.load(
            y_ptr + start + offs_c, mask_r, other=0.0, eviction_policy="evict_first"
        ).to(COMPUTE)
        dy = tl.load(
            dy_ptr + (start + offs_c) * stride_dyc,
            mask_r,
            other=0.0,
            eviction_policy="evict_first",
        ).to(COMPUTE)
        dx = y * (dy - delta)
        # --8<-- [line:stream]
        tl.store(dx_ptr + start + offs_c, dx, mask_r, cache_modifier=".cs")


# --8<-- [end:backward]


# --8<-- [start:tile]
def tile(block_cols: int, itemsize: int) -> tuple[int, int]:
    """The tile of a program of the backward kernel: (BLOCK_ROWS, num_warps).

    At least 4 KiB of y and as many of dy; a thread takes 32 bytes of each, until a
    program has 16 warps.
    """
    block_rows = max(1, 4096 // (block_cols * itemsize))
    return block_rows, min(16, block_rows * block_cols * itemsize // 1024)


# --8<-- [end:tile]


# --8<-- [start:function]
class Softmax(torch.autograd.Function):
    """Saves y: the gradient needs neither x nor the row maximum."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, block_cols: int) -> torch.Tensor:
        rows, cols = x.shape
        y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
        ctx.block_cols = block_cols
        ctx.save_for_backward(y)
        if y.numel():
            forward_kernel[(rows,)](
                x,
                y,
                *x.stride(),
                *y.stride(),
                cols,
                COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
                BLOCK_COLS=block_cols,
                num_warps=max(1, min(16, block_cols // 256)),
            )
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy: torch.Tensor) -> tuple[torch.Tensor, None]:
        (y,) = ctx.saved_tensors
        rows, cols = y.shape
        dx = torch.empty((rows, cols), dtype=y.dtype, device=y.device)
        if dx.numel():
            block_rows, num_warps = tile(ctx.block_cols, y.element_size())
            backward_kernel[(triton.cdiv(rows, block_rows),)](
                y,
                dy,
                dx,
                y.stride(0),
                *dy.stride(),
                dx.stride(0),
                rows,
                cols,
                COMPUTE=tl.float64 if y.dtype == torch.float64 else tl.float32,
                BLOCK_ROWS=block_rows,
                BLOCK_COLS=ctx.block_cols,
                num_warps=num_warps,
            )
        return dx, None


# --8<-- [end:function]


# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, block_cols: int | None = None) -> torch.Tensor:
    """Softmax over the last dimension; differentiable once.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides, on a GPU
            (or on the CPU under TRITON_INTERPRET=1).
        block_cols: columns per tile, a power of two from 1 to 65536; if None, the
            whole row, but at most 16384.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64. The gradient may have any strides, 0 included.

    Raises:
        ValueError: x or block_cols is not one of the above.

    Source: forward, Milakov and Gimelshein, "Online normalizer calculation for
    softmax", 2018, algorithm 3; backward, Dao et al., "FlashAttention", 2022,
    appendix B.2 (the gradient of softmax).
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"x is {x.dtype}; it must be float16, bfloat16, float32 or float64"
        )
    if not x.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"x is on {x.device}; it must be on a GPU, or set TRITON_INTERPRET=1"
        )
    if block_cols is None:
        block_cols = min(16384, triton.next_power_of_2(max(1, x.shape[1])))
    if block_cols not in [2**i for i in range(17)]:
        raise ValueError(
            f"block_cols is {block_cols}; it must be a power of two from 1 to 65536"
        )
    return Softmax.apply(x, block_cols)


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(16, 3000, device=device, requires_grad=True)
    dy = torch.randn(16, 3000, device=device)
    (dx,) = torch.autograd.grad(softmax(x), x, dy)
    x64, dy64 = x.double(), dy.double()
    (expected,) = torch.autograd.grad(torch.softmax(x64, dim=-1), x64, dy64)
    print(f"{device}: largest error {(dx - expected).abs().max().item():.1e}")
# --8<-- [end:demo]
