"""The gradients of RMS norm: those of layer norm without a mean and a bias."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


# --8<-- [start:kernel]
@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, partial_ptr,
    stride_dyr, stride_dyc, stride_xr, stride_xc, rows, cols: tl.int64,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr, NUM_STAGES: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0).to(tl.int64)
    # --8<-- [start:walk]
    offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]  # [1, BLOCK_COLS]
    w = tl.load(w_ptr + offs_c, offs_c < cols, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    first, step = program * BLOCK_ROWS, programs * BLOCK_ROWS
    # --8<-- [line:walk]
    for row in tl.range(first, rows, step, num_stages=NUM_STAGES):
        offs_r = (row + tl.arange(0, BLOCK_ROWS).to(tl.int64))[:, None]
        mask_r = offs_r < rows
        mask = mask_r & (offs_c < cols)
        dy_ptrs = dy_ptr + offs_r * stride_dyr + offs_c * stride_dyc
        dy = tl.load(dy_ptrs, mask, other=0.0).to(tl.float32)
        x_ptrs = x_ptr + offs_r * stride_xr + offs_c * stride_xc
        x = tl.load(x_ptrs, mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + offs_r, mask_r, other=0.0)  # [BLOCK_ROWS, 1]

        # --8<-- [line:x_hat]
        x_hat = x * rstd
        # --8<-- [line:g]
        g = dy * w
        # --8<-- [line:means]
        mean_gx = tl.sum(g * x_hat, axis=1, keep_dims=True) / cols
        # --8<-- [line:dx]
        dx = rstd * (g - x_hat * mean_gx)
        tl.store(dx_ptr + offs_r * cols + offs_c, dx, mask)
        # --8<-- [line:sums]
        dw += dy * x_hat
    # --8<-- [end:walk]

    # --8<-- [start:partial]
    # One row of dw for this program: nobody else writes there.
    partial_ptr += program * cols + tl.arange(0, BLOCK_COLS)
    mask = tl.arange(0, BLOCK_COLS) < cols
    tl.store(partial_ptr, tl.sum(dw, axis=0), mask)
    # --8<-- [end:partial]


# --8<-- [end:kernel]
# --8<-- [start:sum]
@triton.jit
def sum_kernel(
    partial_ptr, dw_ptr, programs, cols: tl.int64,
    BLOCK_PROGRAMS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    offs_c = tl.program_id(0).to(tl.int64) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    total = tl.zeros((BLOCK_PROGRAMS, BLOCK_COLS), tl.float32)
    for start in range(0, programs, BLOCK_PROGRAMS):
        offs_p = (start + tl.arange(0, BLOCK_PROGRAMS)).to(tl.int64)[:, None]
        mask = (offs_p < programs) & (offs_c[None, :] < cols)
        partial_ptrs = partial_ptr + offs_p * cols + offs_c[None, :]
        # --8<-- [line:total]
        total += tl.load(partial_ptrs, mask, other=0.0)
    # --8<-- [line:rounded]
    tl.store(dw_ptr + offs_c, tl.sum(total, axis=0), offs_c < cols)


# --8<-- [end:sum]
# --8<-- [start:checks]
def check(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    for name, given, shape, dtypes in (
        ("x", x, x.shape, DTYPES),
        ("dy", dy, x.shape, (x.dtype,)),
        ("weight", weight, x.shape[1:], DTYPES),
        ("rstd", rstd, x.shape[:1], (torch.float32,)),
    ):
        if given.shape != shape:
            is_shape = f"{name} has shape {list(given.shape)}"
            raise ValueError(f"{is_shape}; it must be {list(shape)}, by that of x")
        if given.dtype not in dtypes:
            raise ValueError(f"{name} is {given.dtype}; it must be one of {dtypes}")
        if given.device != x.device:
            on = f"{name} is on {given.device}"
            raise ValueError(f"{on}; it must be on {x.device}, as x")
        if torch.is_grad_enabled() and given.requires_grad:
            lost = "requires a gradient, which this backward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")


# --8<-- [end:checks]
# --8<-- [start:launch]
WARPS = 16  # of a multiprocessor: its registers hold so many, with 128 for a thread


# --8<-- [start:signature]
def rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor,
    *, programs: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of y = x * rstd * weight.

    Args:
        dy: [rows, cols], the gradient of y; dtype of x, any strides, 0 included.
        x: [rows, cols], float16, bfloat16 or float32, any strides; at most 65536
            columns, fast up to 8192.
        weight: [cols], float16, bfloat16 or float32.
        rstd: [rows], float32: of each row of x 1 / sqrt(mean of squares + eps), which
            the forward pass kept.
        programs: how many share the rows, at least 1; if None, as many as the GPU
            holds. Another number rounds dw in another way.

    Returns:
        dx: [rows, cols], dtype of x, contiguous. dw: [cols], dtype of weight. All sums
        are float32, in an order that depends on the arguments alone.

    Raises:
        ValueError: a tensor or programs is none of the above, or requires a gradient.

    Source: Zhang and Sennrich, "Root mean square layer normalization", 2019, section 4.
    """
    # --8<-- [end:signature]
    check(dy, x, weight, rstd)
    if programs is not None and programs < 1:
        raise ValueError(f"programs is {programs}; it must be at least 1")
    if programs is None and not x.is_cuda:
        raise ValueError(f"programs is None; it must be given, as {x.device} is no GPU")
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if dx.numel() == 0:
        return dx, torch.zeros_like(weight)
    # --8<-- [start:tile]
    # Whole rows, at least 2048 numbers of x; a thread has 16 of them, or more.
    block_cols = triton.next_power_of_2(cols)
    block_rows = max(1, 2048 // block_cols)
    num_warps = min(32, block_rows * block_cols // 512)
    # The tiles that are loaded ahead have 64 KiB on each multiprocessor.
    num_stages = 1 + 4 // x.element_size() if block_cols <= 8192 else 1
    if programs is None:
        gpu = torch.cuda.get_device_properties(x.device)
        programs = gpu.multi_processor_count * max(1, WARPS // num_warps)
    programs = min(programs, triton.cdiv(rows, block_rows))
    # --8<-- [end:tile]
    partial = torch.empty((programs, cols), dtype=torch.float32, device=x.device)
    dw = torch.empty(cols, dtype=weight.dtype, device=x.device)
    with torch.cuda.device_of(dy):
        backward_kernel[(programs,)](
            dy, x, weight.contiguous(), rstd.contiguous(), dx, partial,
            *dy.stride(), *x.stride(), rows, cols,
            BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, NUM_STAGES=num_stages,
            num_warps=num_warps,
        )  # fmt: skip
        sum_kernel[(triton.cdiv(cols, 32),)](
            partial, dw, programs, cols, BLOCK_PROGRAMS=64, BLOCK_COLS=32
        )
    return dx, dw


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    x = torch.randn(300, 1000, device=device).half()
    dy, weight = torch.randn_like(x), torch.randn(1000, device=device).half()
    rstd = (x.float().square().mean(dim=1) + 1e-6).rsqrt()
    programs = None if device == "cuda" else 4
    found = rms_norm_backward(dy, x, weight, rstd, programs=programs)
    # --8<-- [end:call]
    inputs = [t.double().requires_grad_() for t in (x, weight)]
    y = torch.nn.functional.rms_norm(inputs[0], (1000,), inputs[1], eps=1e-6)
    expected = torch.autograd.grad(y, inputs, dy.double())
    errors = [(a - b).abs().max().item() for a, b in zip(found, expected, strict=True)]
    print(f"{device}: largest errors {', '.join(f'{e:.1e}' for e in errors)}")
# --8<-- [end:demo]
