"""The gradients of layer norm; programs add to shared sums of dw and db, by locks."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


# --8<-- [start:kernel]
@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, partial_ptr, lock_ptr,
    stride_dyr, stride_dyc, stride_xr, stride_xc, cols: tl.int64, locks,
    BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:row]
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    mask = offs < cols
    w = tl.load(w_ptr + offs, mask, other=0.0).to(tl.float32)
    dy_ptrs = dy_ptr + row * stride_dyr + offs * stride_dyc
    dy = tl.load(dy_ptrs, mask, other=0.0).to(tl.float32)
    x_ptrs = x_ptr + row * stride_xr + offs * stride_xc
    x = tl.load(x_ptrs, mask, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)

    # Past the end of a row x_hat is not 0, but g and dy are: no sum sees it.
    # --8<-- [line:x_hat]
    x_hat = (x - mean) * rstd
    # --8<-- [line:g]
    g = dy * w
    # --8<-- [line:means]
    mean_g = tl.sum(g, axis=0) / cols
    mean_gx = tl.sum(g * x_hat, axis=0) / cols
    # --8<-- [line:dx]
    dx = rstd * (g - mean_g - x_hat * mean_gx)
    tl.store(dx_ptr + row * cols + offs, dx, mask)
    # --8<-- [end:row]

    # --8<-- [start:locked]
    # Neighbours run at the same time: they take different locks.
    which = row % locks
    dw_ptrs = partial_ptr + which * cols + offs
    db_ptrs = dw_ptrs + locks * cols
    # Whoever finds a 0 has the lock, and has left a 1 for the others.
    # --8<-- [line:take]
    while tl.atomic_cas(lock_ptr + which, 0, 1) == 1:
        pass
    # --8<-- [line:add]
    tl.store(dw_ptrs, tl.load(dw_ptrs, mask, other=0.0) + dy * x_hat, mask)
    tl.store(db_ptrs, tl.load(db_ptrs, mask, other=0.0) + dy, mask)
    # One thread gives the lock back: first all have to have stored.
    # --8<-- [line:barrier]
    tl.debug_barrier()
    # --8<-- [line:release]
    tl.atomic_xchg(lock_ptr + which, 0)
    # --8<-- [end:locked]


# --8<-- [end:kernel]
# --8<-- [start:sum]
@triton.jit
def sum_kernel(
    partial_ptr, sum_ptr, locks, cols: tl.int64,
    BLOCK_LOCKS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    which = tl.program_id(1).to(tl.int64)  # 0 is dw, 1 is db
    offs_c = tl.program_id(0).to(tl.int64) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    total = tl.zeros((BLOCK_LOCKS, BLOCK_COLS), tl.float32)
    for start in range(0, locks, BLOCK_LOCKS):
        offs_l = (start + tl.arange(0, BLOCK_LOCKS))[:, None]
        mask = (offs_l < locks) & (offs_c[None, :] < cols)
        row = which * locks + offs_l
        partial_ptrs = partial_ptr + row * cols + offs_c[None, :]
        # --8<-- [line:total]
        total += tl.load(partial_ptrs, mask, other=0.0)
    # --8<-- [line:rounded]
    tl.store(sum_ptr + which * cols + offs_c, tl.sum(total, axis=0), offs_c < cols)


# --8<-- [end:sum]
# --8<-- [start:checks]
def check(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
    mean: torch.Tensor, rstd: torch.Tensor,
) -> None:  # fmt: skip
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    for name, given, shape, dtypes in (
        ("x", x, x.shape, DTYPES),
        ("dy", dy, x.shape, (x.dtype,)),
        ("weight", weight, x.shape[1:], DTYPES),
        ("mean", mean, x.shape[:1], (torch.float32,)),
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
def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
    mean: torch.Tensor, rstd: torch.Tensor, *, locks: int = 64,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of y = (x - mean) * rstd * weight + bias.

    Args:
        dy: [rows, cols], the gradient of y; dtype of x, any strides, 0 included.
        x: [rows, cols], float16, bfloat16 or float32, any strides; at most 65536
            columns.
        weight: [cols], float16, bfloat16 or float32.
        mean, rstd: [rows], float32: of each row of x the mean and
            1 / sqrt(variance + eps), which the forward pass kept.
        locks: how many partial sums of dw and db there are, at least 1.

    Returns:
        dx: [rows, cols], dtype of x, contiguous. dw, db: [cols], dtype of weight. All
        sums are float32; the order of those over rows differs from run to run.

    Raises:
        ValueError: a tensor or locks is none of the above, or requires a gradient.

    Source: Triton documentation, tutorial on layer normalization (the locks).
    """
    check(dy, x, weight, mean, rstd)
    if locks < 1:
        raise ValueError(f"locks is {locks}; it must be at least 1")
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if dx.numel() == 0:
        return dx, torch.zeros_like(weight), torch.zeros_like(weight)
    partial = torch.zeros((2, locks, cols), dtype=torch.float32, device=x.device)
    free = torch.zeros(locks, dtype=torch.int32, device=x.device)
    sums = torch.empty((2, cols), dtype=weight.dtype, device=x.device)
    block_cols = triton.next_power_of_2(cols)
    with torch.cuda.device_of(dy):
        backward_kernel[(rows,)](
            dy, x, weight.contiguous(), mean.contiguous(), rstd.contiguous(),
            dx, partial, free, *dy.stride(), *x.stride(), cols, locks,
            BLOCK_COLS=block_cols, num_warps=max(1, min(32, block_cols // 256)),
        )  # fmt: skip
        sum_kernel[(triton.cdiv(cols, 32), 2)](
            partial, sums, locks, cols, BLOCK_LOCKS=64, BLOCK_COLS=32
        )
    return dx, sums[0], sums[1]


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(300, 1000, device=device).half()
    dy, weight = torch.randn_like(x), torch.randn(1000, device=device).half()
    mean = x.float().mean(dim=1)
    rstd = (x.float().var(dim=1, correction=0) + 1e-5).rsqrt()
    found = layer_norm_backward(dy, x, weight, mean, rstd)
    inputs = [t.double().requires_grad_() for t in (x, weight, weight)]
    y = torch.nn.functional.layer_norm(inputs[0], (1000,), *inputs[1:])
    expected = torch.autograd.grad(y, inputs, dy.double())
    errors = [(a - b).abs().max().item() for a, b in zip(found, expected, strict=True)]
    print(f"{device}: largest errors {', '.join(f'{e:.1e}' for e in errors)}")
# --8<-- [end:demo]
