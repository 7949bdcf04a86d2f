"""Layer norm of rows of any length: mean and variance in one pass, by Welford."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr,
    stride_xr, stride_xc, stride_w, stride_b, rows, cols: tl.int64,
    EPS: tl.constexpr, COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    x_ptr += offs_r * stride_xr
    y_ptr += offs_r * cols

    # --8<-- [start:statistics]
    first = tl.load(x_ptr, offs_r < rows, other=0.0).to(COMPUTE)
    # Each lane has a mean of its own, of the columns that it sees.
    lane_mean = tl.zeros((BLOCK_ROWS, BLOCK_COLS), COMPUTE)
    lane_m2 = tl.zeros((BLOCK_ROWS, BLOCK_COLS), COMPUTE)
    seen = tl.zeros((), COMPUTE)
    for start in tl.range(0, cols, BLOCK_COLS, loop_unroll_factor=4):
        offs_c = start + offs
        # Where a row fills its tiles, FULL, no lane is past its end.
        # --8<-- [line:full]
        mask_c = (offs_c < cols) | FULL
        mask = (offs_r < rows) & mask_c
        x_ptrs = x_ptr + offs_c * stride_xc
        # --8<-- [line:keep]
        x = tl.load(x_ptrs, mask, other=0.0, eviction_policy="evict_last").to(COMPUTE)
        seen += 1.0
        x -= first
        # --8<-- [line:delta]
        delta = tl.where(mask_c, x - lane_mean, 0.0)
        lane_mean += delta * (1.0 / seen)
        # --8<-- [line:m2]
        lane_m2 += delta * (x - lane_mean)
    # The lanes are parts of the row, and merged all at once.
    count = ((cols - offs + BLOCK_COLS - 1) // BLOCK_COLS).to(COMPUTE)
    # --8<-- [line:lanes]
    mean = tl.sum(lane_mean * count, axis=1, keep_dims=True) / cols
    apart = lane_mean - mean
    # --8<-- [line:merged]
    m2 = tl.sum(lane_m2 + apart * apart * count, axis=1, keep_dims=True)
    # --8<-- [line:rstd]
    rstd = tl.rsqrt(m2 / cols + EPS)
    # --8<-- [end:statistics]

    # --8<-- [start:output]
    for start in tl.range(0, cols, BLOCK_COLS, loop_unroll_factor=4):
        offs_c = start + offs
        mask_c = (offs_c < cols) | FULL
        mask = (offs_r < rows) & mask_c
        x_ptrs = x_ptr + offs_c * stride_xc
        # --8<-- [line:again]
        x = tl.load(x_ptrs, mask, other=0.0, eviction_policy="evict_first").to(COMPUTE)
        weight = tl.load(weight_ptr + offs_c * stride_w, mask_c, other=0.0)
        bias = tl.load(bias_ptr + offs_c * stride_b, mask_c, other=0.0)
        # --8<-- [line:output]
        y = (x - first - mean) * rstd * weight.to(COMPUTE) + bias.to(COMPUTE)
        tl.store(y_ptr + offs_c, y, mask, cache_modifier=".cs")
    tl.store(mean_ptr + offs_r, first + mean, offs_r < rows)
    tl.store(rstd_ptr + offs_r, rstd, offs_r < rows)
    # --8<-- [end:output]


# --8<-- [end:kernel]


# --8<-- [start:tile]
def tile(cols: int, itemsize: int) -> tuple[int, int, int]:
    """The tile of a program: (BLOCK_ROWS, BLOCK_COLS, num_warps).

    Two rows of up to 8 KiB share weight and bias. A thread has 128 bytes of them: 1024
    threads have 128 KiB, which the L1 cache can keep for the second pass.
    """
    whole = triton.next_power_of_2(cols)
    block_rows = 2 if whole * itemsize <= 8192 else 1
    num_warps = min(32, max(4, block_rows * whole * itemsize // 4096))
    return block_rows, min(whole, 256 * num_warps // block_rows), num_warps


# --8<-- [end:tile]


# --8<-- [start:checks]
def check(x: torch.Tensor, **vectors: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
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
    eps: float = 1e-5, block_cols: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) * weight + bias, for each row.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        weight, bias: [cols], each of the dtype of x or float32, any stride. Without a
            bias, None, nothing is added.
        eps: keeps the root away from 0.
        block_cols: columns of a tile, a power of two; by default as in `tile`.

    Returns:
        y: [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.
        mean, rstd: [rows], the dtype of the arithmetic; rstd is the second factor,
        1 / sqrt(variance + eps). Of rows without columns they are NaN.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Ba, Kiros and Hinton, "Layer normalization", 2016, section 3; Welford,
    "Note on a method for calculating corrected sums of squares and products", 1962;
    Chan, Golub and LeVeque, 1983, for parts that are merged.
    """
    check(x, weight=weight, bias=weight if bias is None else bias)
    (rows, cols), double = x.shape, x.dtype == torch.float64
    bias = x.new_zeros(1).expand(cols) if bias is None else bias
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    inner = torch.float64 if double else torch.float32
    mean, rstd = (torch.empty(rows, dtype=inner, device=x.device) for _ in range(2))
    if y.numel() == 0:
        return y, mean.fill_(float("nan")), rstd.fill_(float("nan"))
    block_rows, best, num_warps = tile(cols, x.element_size())
    block_cols = block_cols or best
    with torch.cuda.device_of(x):
        layer_norm_kernel[(triton.cdiv(rows, block_rows),)](
            x, weight, bias, y, mean, rstd,
            *x.stride(), *weight.stride(), *bias.stride(), rows, cols,
            EPS=eps, COMPUTE=tl.float64 if double else tl.float32,
            BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, FULL=cols % block_cols == 0,
            num_warps=num_warps,
            # In 64 registers there is room for the loads of four turns at once.
            maxnreg=None if double else 64,
        )  # fmt: skip
    return y, mean, rstd


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(8, 3000, device=device)
    weight, bias = torch.randn(2, 3000, device=device)
    y, mean, rstd = layer_norm(x, weight, bias, block_cols=256)
    double = x.double(), (3000,), weight.double(), bias.double()
    error = (y - torch.nn.functional.layer_norm(*double)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
