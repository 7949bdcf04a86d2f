"""RMS norm of rows of any length: one pass adds up the squares, a second one writes."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:kernel]
@triton.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, rstd_ptr,
    stride_xr, stride_xc, stride_w, rows, cols: tl.int64,
    EPS: tl.constexpr, COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    x_ptr += offs_r * stride_xr
    y_ptr += offs_r * cols

    # --8<-- [start:statistics]
    # Each lane has a sum of its own, of the columns that it sees.
    lane_sum = tl.zeros((BLOCK_ROWS, BLOCK_COLS), COMPUTE)
    excess = tl.zeros((BLOCK_ROWS, BLOCK_COLS), COMPUTE)
    for start in tl.range(0, cols, BLOCK_COLS, loop_unroll_factor=4):
        offs_c = start + offs
        mask = (offs_r < rows) & (offs_c < cols)
        x_ptrs = x_ptr + offs_c * stride_xc
        # --8<-- [line:keep]
        x = tl.load(x_ptrs, mask, other=0.0, eviction_policy="evict_last").to(COMPUTE)
        # --8<-- [line:square]
        square = x * x - excess
        new_sum = lane_sum + square
        # What rounding has added to the sum, or taken from it. Of infinity it is none.
        # --8<-- [line:excess]
        excess = tl.where(new_sum < float("inf"), (new_sum - lane_sum) - square, 0.0)
        lane_sum = new_sum
    # --8<-- [line:rstd]
    rstd = tl.rsqrt(tl.sum(lane_sum, axis=1, keep_dims=True) / cols + EPS)
    # --8<-- [end:statistics]

    # --8<-- [start:output]
    for start in tl.range(0, cols, BLOCK_COLS, loop_unroll_factor=4):
        offs_c = start + offs
        mask_c = offs_c < cols
        mask = (offs_r < rows) & mask_c
        x_ptrs = x_ptr + offs_c * stride_xc
        # --8<-- [line:again]
        x = tl.load(x_ptrs, mask, other=0.0, eviction_policy="evict_first").to(COMPUTE)
        weight = tl.load(weight_ptr + offs_c * stride_w, mask_c, other=0.0)
        # --8<-- [line:output]
        y = x * rstd * weight.to(COMPUTE)
        tl.store(y_ptr + offs_c, y, mask, cache_modifier=".cs")
    tl.store(rstd_ptr + offs_r, rstd, offs_r < rows)
    # --8<-- [end:output]


# --8<-- [end:kernel]


# --8<-- [start:tile]
def tile(cols: int, itemsize: int) -> tuple[int, int, int]:
    """The tile of a program: (BLOCK_ROWS, BLOCK_COLS, num_warps).

    Two rows of up to 8 KiB share the weight. A thread has 128 bytes of them: 1024
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
def rms_norm(
    x: torch.Tensor, weight: torch.Tensor, *,
    eps: float = 1e-6, block_cols: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """x / sqrt(mean of x * x + eps) * weight, for each row.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        weight: [cols], of the dtype of x or float32, any stride.
        eps: keeps the root away from 0.
        block_cols: columns of a tile, a power of two; by default as in `tile`.

    Returns:
        y: [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.
        rstd: [rows], the dtype of the arithmetic: 1 / sqrt(mean of x * x + eps). Of
        rows without columns it is NaN.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Zhang and Sennrich, "Root mean square layer normalization", 2019, section 4;
    Kahan, "Further remarks on reducing truncation errors", 1965, for the sums.
    """
    check(x, weight=weight)
    (rows, cols), double = x.shape, x.dtype == torch.float64
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    inner = torch.float64 if double else torch.float32
    rstd = torch.empty(rows, dtype=inner, device=x.device)
    if y.numel() == 0:
        return y, rstd.fill_(float("nan"))
    block_rows, best, num_warps = tile(cols, x.element_size())
    with torch.cuda.device_of(x):
        rms_norm_kernel[(triton.cdiv(rows, block_rows),)](
            x, weight, y, rstd, *x.stride(), *weight.stride(), rows, cols,
            EPS=eps, COMPUTE=tl.float64 if double else tl.float32,
            BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols or best, num_warps=num_warps,
            # In 64 registers there is room for the loads of four turns at once.
            maxnreg=None if double else 64,
        )  # fmt: skip
    return y, rstd


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(8, 3000, device=device)
    weight = torch.randn(3000, device=device)
    y, rstd = rms_norm(x, weight, block_cols=256)
    expected = torch.nn.functional.rms_norm(x.double(), (3000,), weight.double(), 1e-6)
    error = (y - expected).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
