"""Attention of a prefix language model: causal, but every query sees the prefix."""

import torch
import triton
import triton.language as tl
from torch import Tensor


# --8<-- [start:tiles]
@triton.jit
def tile(x, at, offs, size, COLS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    """Pointers to rows of one head of x = (pointer, *strides), and which exist."""
    # int64, because offsets may pass 2^31.
    rows, cols = offs.to(tl.int64)[:, None], tl.arange(0, BLOCK_COLS)[None, :]
    ptrs = x[0] + at[0] * x[1] + at[1] * x[2] + rows * x[3] + cols.to(tl.int64) * x[4]
    return ptrs, (rows < size) & (cols < COLS)


@triton.jit
def scores(a, b, own, met, prefix, scale, seq_q, seq_k, CAUSAL, KEYS):
    """a b^T * scale; -inf where a query does not see a key, or one does not exist."""
    row, col = own[:, None], met[None, :]
    offs_m, offs_n = (col, row) if KEYS else (row, col)
    seen = (offs_m < seq_q) & (offs_n < seq_k)
    if CAUSAL:
        seen &= (offs_n <= offs_m + seq_k - seq_q) | (offs_n < prefix)
    return tl.where(seen, tl.dot(a, b.T, input_precision="ieee") * scale, float("-inf"))


# --8<-- [end:tiles]
# --8<-- [start:forward]
@triton.jit
def forward_kernel(
    q_view, k_view, v_view, o_view, lse_view, prefixes, scale, heads, group,
    seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    at, kv_at = (row // heads, row % heads), (row // heads, row % heads // group)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(*tile(q_view, at, offs_m, seq_q, HEAD_DIM, BLOCK_D), 0.0)
    m_i = tl.full((BLOCK, 1), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK, 1), tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    prefix = tl.load(prefixes[0] + at[0] * prefixes[1])
    last = tl.maximum((tl.program_id(0) + 1) * BLOCK + seq_k - seq_q, prefix)
    for start_n in range(0, tl.minimum(last, seq_k) if CAUSAL else seq_k, BLOCK):
        offs_n = start_n + tl.arange(0, BLOCK)
        k = tl.load(*tile(k_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        v = tl.load(*tile(v_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        s = scores(q, k, offs_m, offs_n, prefix, scale, seq_q, seq_k, CAUSAL, False)
        m_new = tl.maximum(m_i, tl.max(s, axis=1, keep_dims=True))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p, alpha = tl.exp(s - shift), tl.exp(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, axis=1, keep_dims=True)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha, input_precision="ieee")
        m_i = m_new
    ptrs, mask = tile(o_view, at, offs_m, seq_q, HEAD_DIM, BLOCK_D)
    tl.store(ptrs, acc / tl.where(l_i == 0.0, 1.0, l_i), mask=mask)
    ptrs, mask = tile(lse_view, at, offs_m, seq_q, 1, 1)
    tl.store(ptrs, m_i + tl.log(l_i), mask=mask)


# --8<-- [end:forward]
# --8<-- [start:backward]
@triton.jit
def backward_kernel(
    a_view, c_view, b_view, d_view, lse_view, delta_view, da_view, dc_view, prefixes,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    KEYS: tl.constexpr,
):  # fmt: skip
    """Owns a block of (q, do) and meets (k, v); with KEYS, the other way round."""
    row, start = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK
    at, own = (row // heads, row % heads), start + tl.arange(0, BLOCK)
    own_size, size = (seq_k, seq_q) if KEYS else (seq_q, seq_k)
    a = tl.load(*tile(a_view, at, own, own_size, HEAD_DIM, BLOCK_D), 0.0)
    c = tl.load(*tile(c_view, at, own, own_size, HEAD_DIM, BLOCK_D), 0.0)
    da = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    dc = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    shift = seq_k - seq_q
    prefix = tl.load(prefixes[0] + at[0] * prefixes[1])
    first = tl.where(start < prefix, 0, tl.maximum(start - shift, 0))
    last = tl.minimum(tl.maximum(start + BLOCK + shift, prefix), size)
    first, last = first if CAUSAL and KEYS else 0, size if KEYS or not CAUSAL else last
    for i in range(group if KEYS else 1):
        met_at = (at[0], at[1] * group + i if KEYS else at[1] // group)
        for start_met in range(first, last, BLOCK):
            met = start_met + tl.arange(0, BLOCK)
            b = tl.load(*tile(b_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            d = tl.load(*tile(d_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            s = scores(a, b, own, met, prefix, scale, seq_q, seq_k, CAUSAL, KEYS)
            m_at, offs_m = (met_at, met) if KEYS else (at, own)
            lse = tl.load(*tile(lse_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            delta = tl.load(*tile(delta_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            # Without the where, a row that saw nothing would be exp(-inf + inf).
            p = tl.where(s == float("-inf"), 0.0, tl.exp(s - (lse.T if KEYS else lse)))
            dp = tl.dot(c, d.T, input_precision="ieee")
            ds = p * (dp - (delta.T if KEYS else delta))
            da = tl.dot(ds.to(b.dtype), b, da, input_precision="ieee")
            if KEYS:
                dc = tl.dot(p.to(d.dtype), d, dc, input_precision="ieee")
    ptrs, mask = tile(da_view, at, own, own_size, HEAD_DIM, BLOCK_D)
    tl.store(ptrs, da * scale, mask=mask)
    if KEYS:
        ptrs, mask = tile(dc_view, at, own, own_size, HEAD_DIM, BLOCK_D)
        tl.store(ptrs, dc, mask=mask)


# --8<-- [end:backward]
# --8<-- [start:operators]
def launch(kernel, views, q, k, causal, scale, block, **more) -> None:
    """A program for each block of rows of each head of the first of `views`."""
    batch, heads, rows, head_dim = views[0].shape
    with torch.cuda.device_of(q):
        kernel[(triton.cdiv(rows, block), batch * heads)](
            *((x, *x.stride()) for x in views), scale, heads,
            q.shape[1] // max(1, k.shape[1]), q.shape[2], k.shape[2], causal, block,
            head_dim, max(16, triton.next_power_of_2(head_dim)), **more,
            num_warps=4 if head_dim * q.element_size() <= 256 else 8, num_stages=2,
        )  # fmt: skip


@torch.library.custom_op("flash::prefix_attention", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, prefix: Tensor, causal: bool, scale: float,
    block: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    o, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    views = q, k, v, o, lse[..., None], prefix
    launch(forward_kernel, views, q, k, causal, scale, block)
    return o, lse


@torch.library.custom_op("flash::prefix_attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, prefix: Tensor, o: Tensor, lse: Tensor, do: Tensor,
    dlse: Tensor, causal: bool, scale: float, block: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    delta = (o.float() * do).sum(dim=-1) - dlse
    rows, options = (lse[..., None], delta[..., None]), (q, k, causal, scale, block)
    launch(backward_kernel, (q, do, k, v, *rows, dq, dq, prefix), *options, KEYS=False)
    launch(backward_kernel, (k, v, q, do, *rows, dk, dv, prefix), *options, KEYS=True)
    return dq, dk, dv


def keep(ctx, inputs, output):
    ctx.options = inputs[4:]
    ctx.save_for_backward(*inputs[:4], *output)


def gradients(ctx, do, dlse):
    return *backward(*ctx.saved_tensors, do, dlse, *ctx.options), *4 * (None,)


forward.register_fake(
    lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32))
)
backward.register_fake(lambda *x: tuple(torch.empty_like(y) for y in x[:3]))
forward.register_autograd(gradients, setup_context=keep)


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, prefix: Tensor, causal: bool = True,
    scale: float | None = None, block: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores; autograd knows both.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        prefix: [batch], int32: how many keys of a sequence every query sees.
        causal: query i sees key j only if j < prefix or j <= i + seq_k - seq_q.
        scale: head_dim ** -0.5 if None. block: rows of a tile, 16, 32, 64 or 128.
    Returns o: as q, in its layout; lse: [batch, heads, seq_q], float32. Raises
    ValueError: a tensor is not one of the above. Source: Raffel et al., "T5", 2020.
    """
    if torch.is_autocast_enabled(q.device.type):
        low = torch.get_autocast_dtype(q.device.type)
        q, k, v = (x.to(low) if x.dtype == torch.float32 else x for x in (q, k, v))
    right = q.ndim == 4 and 1 <= q.shape[3] <= 256 and q.shape[0] * q.shape[1] <= 65535
    if not right or q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        right = "float16/32 or bfloat16, 4-D, at most 65535 heads, head_dim 1 to 256"
        raise ValueError(f"q is {q.dtype} of {list(q.shape)}; it must be {right}")
    batch, heads, _, head_dim = q.shape
    kv_heads, seq_k = k.shape[1:3] if k.ndim == 4 else (0, "seq_k")
    divides = heads % kv_heads == 0 if kv_heads else heads == 0
    of_keys = (batch, kv_heads if divides else f"a divisor of {heads}", seq_k, head_dim)
    kv, own = (of_keys, q.dtype), ((batch,), torch.int32)
    for name, x, (shape, dtype) in ("k", k, kv), ("v", v, kv), ("prefix", prefix, own):
        known = isinstance(x, Tensor)
        if not known or (x.shape, x.dtype, x.device) != (shape, dtype, q.device):
            got = f"{x.dtype} on {x.device} of {list(x.shape)}" if known else x
            right = f"{dtype} on {q.device} of {list(shape)}"
            raise ValueError(f"{name} is {got}; it must be {right}")
    if isinstance(scale, Tensor):
        raise ValueError(f"scale is {scale!r}; it must be a number")
    block = block or (64 if head_dim * q.element_size() <= 512 else 32)
    scale = head_dim**-0.5 if scale is None else scale
    return forward(q, k, v, prefix, causal, scale, block)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(3, 1, 1, 200, 64, device=device).requires_grad_()
    q, k, v = exact = x.detach().double().requires_grad_()
    i = torch.arange(200, device=device)
    prefix = torch.tensor([90], dtype=torch.int32, device=device)
    s = (q @ k.mT / 8).where((i <= i[:, None]) | (i < 90), float("-inf"))
    o, true = attention(*x, prefix=prefix)[0], s.softmax(-1) @ v
    dx, dtrue = torch.autograd.grad(o.square().sum() + true.square().sum(), (x, exact))
    error, of_gradients = (o - true).abs().max(), (dx - dtrue).abs().max()
    print(f"{device}: largest error {error:.1e}, of the gradients {of_gradients:.1e}")
# --8<-- [end:operators]
