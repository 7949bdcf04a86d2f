"""Layer norm: whole rows in registers, and two passes over them that cost no memory."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr,
    stride_xr, stride_xc, stride_w, stride_b, rows, cols,
    EPS: tl.constexpr, COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:load]
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    # Where a row fills its block, FULL, no lane is past its end.
    # --8<-- [line:full]
    mask_c = (offs_c < cols) | FULL
    mask = (offs_r < rows) & mask_c
    x_ptrs = x_ptr + offs_r * stride_xr + offs_c * stride_xc
    # --8<-- [line:load]
    x = tl.load(x_ptrs, mask, other=0.0).to(COMPUTE)
    # --8<-- [line:first]
    first = tl.load(x_ptr + offs_r * stride_xr, offs_r < rows, other=0.0).to(COMPUTE)
    # --8<-- [end:load]

    # --8<-- [start:moments]
    # A shift changes no deviation. The mean of small numbers is rounded less.
    # --8<-- [line:shift]
    x = tl.where(mask_c, x - first, 0.0)
    # --8<-- [line:mean]
    mean = tl.sum(x, axis=1, keep_dims=True) / cols
    # Past the end of a row x is 0, but x - mean is not.
    # --8<-- [line:centred]
    centred = tl.where(mask_c, x - mean, 0.0)
    # --8<-- [line:variance]
    variance = tl.sum(centred * centred, axis=1, keep_dims=True) / cols
    # --8<-- [line:rstd]
    rstd = tl.rsqrt(variance + EPS)
    # --8<-- [end:moments]

    # --8<-- [start:output]
    # Every program reads these, so they come from a cache.
    w_ptrs, b_ptrs = weight_ptr + offs_c * stride_w, bias_ptr + offs_c * stride_b
    # --8<-- [line:weight]
    weight = tl.load(w_ptrs, mask_c, other=0.0)
    bias = tl.load(b_ptrs, mask_c, other=0.0)
    # --8<-- [line:output]
    y = centred * rstd * weight.to(COMPUTE) + bias.to(COMPUTE)
    tl.store(y_ptr + offs_r * cols + offs_c, y, mask, cache_modifier=".cs")
    # The backward pass needs these two.
    # --8<-- [line:saved]
    tl.store(mean_ptr + offs_r, first + mean, offs_r < rows)
    tl.store(rstd_ptr + offs_r, rstd, offs_r < rows)
    # --8<-- [end:output]


# --8<-- [end:kernel]


# --8<-- [start:tile]
def tile(cols: int, itemsize: int) -> tuple[int, int, int]:
    """The tile of a program: (BLOCK_ROWS, BLOCK_COLS, num_warps).

    Two rows of up to 4096 columns share what a thread has read of weight and bias;
    of shorter rows there are more. A thread takes 64 bytes, until a program has 16
    warps, so that two programs fit. Rows of more than 16384 columns need 32.
    """
    block_cols = triton.next_power_of_2(cols)
    block_rows = max(2, 2048 // block_cols) if block_cols <= 4096 else 1
    num_warps = max(4, block_rows * block_cols * itemsize // 2048)
    return block_rows, block_cols, min(num_warps, 16 if block_cols <= 16384 else 32)


# --8<-- [end:tile]


# --8<-- [start:checks]
def check(x: torch.Tensor, **vectors: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")
    for name, w in vectors.items():
        if w.shape != x.shape[1:]:
            wanted = f"[{x.shape[1]}], as x has columns"
            raise ValueError(f"{name} has shape {list(w.shape)}; it must be {wanted}")
        if w.dtype not in (x.dtype, torch.float32):
            wanted = f"{x.dtype}, as x, or float32"
            raise ValueError(f"{name} is {w.dtype}; it must be {wanted}")
        if w.device != x.device:
            wanted = f"on {x.device}, as x"
            raise ValueError(f"{name} is on {w.device}; it must be {wanted}")
    for name, tensor in {"x": x, **vectors}.items():
        if torch.is_grad_enabled() and tensor.requires_grad:
            lost = "requires a gradient, which this forward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")


# --8<-- [end:checks]


# --8<-- [start:launch]
def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) * weight + bias, for each row.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides; at most
            65536 columns.
        weight, bias: [cols], each of the dtype of x or float32, any stride. Without a
            bias, None, nothing is added.
        eps: keeps the root away from 0.

    Returns:
        y: [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.
        mean, rstd: [rows], the dtype of the arithmetic; rstd is the second factor,
        1 / sqrt(variance + eps). Of rows without columns they are NaN.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Ba, Kiros and Hinton, "Layer normalization", 2016, section 3.
    """
    check(x, weight=weight, bias=weight if bias is None else bias)
    (rows, cols), double = x.shape, x.dtype == torch.float64
    bias = x.new_zeros(1).expand(cols) if bias is None else bias
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    inner = torch.float64 if double else torch.float32
    mean, rstd = (torch.empty(rows, dtype=inner, device=x.device) for _ in range(2))
    if y.numel() == 0:
        return y, mean.fill_(float("nan")), rstd.fill_(float("nan"))
    block_rows, block_cols, num_warps = tile(cols, x.element_size())
    with torch.cuda.device_of(x):
        layer_norm_kernel[(triton.cdiv(rows, block_rows),)](
            x, weight, bias, y, mean, rstd,
            *x.stride(), *weight.stride(), *bias.stride(), rows, cols,
            EPS=eps, COMPUTE=tl.float64 if double else tl.float32,
            BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, FULL=cols == block_cols,
            # With 64 registers a thread, a multiprocessor holds 32 warps.
            num_warps=num_warps,
            maxnreg=64 if block_cols > 4096 and not double else None,
        )  # fmt: skip
    return y, mean, rstd


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    x = torch.randn(64, 1000, device=device)
    weight, bias = torch.randn(2, 1000, device=device)
    y, mean, rstd = layer_norm(x, weight, bias)
    # --8<-- [end:call]
    double = x.double(), (1000,), weight.double(), bias.double()
    error = (y - torch.nn.functional.layer_norm(*double)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
