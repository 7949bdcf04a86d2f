"""Attention with softcap: no score passes cap * tanh(s / cap), forward and backward."""

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
def scores(a, b, own, met, scale, cap, seq_q, seq_k, CAUSAL, KEYS):
    """cap * tanh(x), x = a b^T * scale / cap; -inf where a query sees no key."""
    row, col = own[:, None], met[None, :]
    offs_m, offs_n = (col, row) if KEYS else (row, col)
    seen = (offs_m < seq_q) & (offs_n < seq_k)
    if CAUSAL:
        seen &= offs_n <= offs_m + seq_k - seq_q
    x = tl.dot(a, b.T, input_precision="ieee") * (scale / cap)
    # Near 0 the form with exp would cancel: Lambert's fraction of tanh.
    near = x * (945 + x * x * (105 + x * x)) / (945 + x * x * (420 + 15 * x * x))
    tanh = tl.where(tl.abs(x) < 0.75, near, 1 - 2 / (1 + tl.exp(2 * x)))
    return tl.where(seen, cap * tanh, float("-inf"))


# --8<-- [end:tiles]
# --8<-- [start:forward]
@triton.jit
def forward_kernel(
    q_view, k_view, v_view, o_view, lse_view, scale, heads, group,
    seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, cap,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    at, kv_at = (row // heads, row % heads), (row // heads, row % heads // group)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(*tile(q_view, at, offs_m, seq_q, HEAD_DIM, BLOCK_D), 0.0)
    m_i = tl.full((BLOCK, 1), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK, 1), tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    last = (tl.program_id(0) + 1) * BLOCK + seq_k - seq_q
    for start_n in range(0, tl.minimum(last, seq_k) if CAUSAL else seq_k, BLOCK):
        offs_n = start_n + tl.arange(0, BLOCK)
        k = tl.load(*tile(k_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        v = tl.load(*tile(v_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        s = scores(q, k, offs_m, offs_n, scale, cap, seq_q, seq_k, CAUSAL, False)
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
    a_view, c_view, b_view, d_view, lse_view, delta_view, da_view, dc_view,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    KEYS: tl.constexpr, cap,
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
    first = tl.maximum(start - shift, 0) if CAUSAL and KEYS else 0
    last = tl.minimum(start + BLOCK + shift, size) if CAUSAL and not KEYS else size
    for i in range(group if KEYS else 1):
        met_at = (at[0], at[1] * group + i if KEYS else at[1] // group)
        for start_met in range(first, last, BLOCK):
            met = start_met + tl.arange(0, BLOCK)
            b = tl.load(*tile(b_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            d = tl.load(*tile(d_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            s = scores(a, b, own, met, scale, cap, seq_q, seq_k, CAUSAL, KEYS)
            m_at, offs_m = (met_at, met) if KEYS else (at, own)
            lse = tl.load(*tile(lse_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            delta = tl.load(*tile(delta_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            # Without the where, a row that saw nothing would be exp(-inf + inf).
            p = tl.where(s == float("-inf"), 0.0, tl.exp(s - (lse.T if KEYS else lse)))
            dp = tl.dot(c, d.T, input_precision="ieee")
            ds = p * (dp - (delta.T if KEYS else delta))
            # The slope of the cap: 0 where s is -inf, because 0 * -inf is NaN.
            ds *= tl.where(s == float("-inf"), 0.0, 1 - (s / cap) * (s / cap))
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


@torch.library.custom_op("flash::softcap_attention", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, cap: float, block: int
) -> tuple[Tensor, Tensor]:
    o, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    views = q, k, v, o, lse[..., None]
    launch(forward_kernel, views, q, k, causal, scale, block, cap=cap)
    return o, lse


@torch.library.custom_op("flash::softcap_attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, dlse: Tensor,
    causal: bool, scale: float, cap: float, block: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    delta = (o.float() * do).sum(dim=-1) - dlse
    rows, options = (lse[..., None], delta[..., None]), (q, k, causal, scale, block)
    launch(backward_kernel, (q, do, k, v, *rows, dq, dq), *options, KEYS=False, cap=cap)
    launch(backward_kernel, (k, v, q, do, *rows, dk, dv), *options, KEYS=True, cap=cap)
    return dq, dk, dv


def keep(ctx, inputs, output):
    ctx.options = inputs[3:]
    ctx.save_for_backward(*inputs[:3], *output)


def gradients(ctx, do, dlse):
    return *backward(*ctx.saved_tensors, do, dlse, *ctx.options), *4 * (None,)


forward.register_fake(
    lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32))
)
backward.register_fake(lambda *x: tuple(torch.empty_like(y) for y in x[:3]))
forward.register_autograd(gradients, setup_context=keep)


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, cap: float, causal: bool = False,
    scale: float | None = None, block: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """softmax(s) v and the logsumexp of s = cap * tanh(q k^T * scale / cap).

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        cap: what no score passes, positive and finite.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        block: rows of a tile, a power of two from 16 to 128; None is 64 or 32.
    Returns o: as q, in its layout; lse: [batch, heads, seq_q], float32. Raises
    ValueError: an argument is none of the above. Source: Gemma Team, "Gemma 2", 2024.
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
    for name, x in (("k", k), ("v", v)):
        if (x.shape, x.dtype, x.device) != (of_keys, q.dtype, q.device):
            got = f"{x.dtype} on {x.device} of {list(x.shape)}"
            right = f"{q.dtype} on {q.device} of {list(of_keys)}"
            raise ValueError(f"{name} is {got}; it must be {right}")
    if not 0 < cap < float("inf"):
        raise ValueError(f"cap is {cap}; it must be positive and finite")
    if isinstance(scale, Tensor):
        raise ValueError(f"scale is {scale!r}; it must be a number")
    block = block or (64 if head_dim * q.element_size() <= 512 else 32)
    scale = head_dim**-0.5 if scale is None else scale
    return forward(q, k, v, causal, scale, cap, block)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(3, 1, 1, 200, 64, device=device).requires_grad_()
    q, k, v = exact = x.detach().double().requires_grad_()
    o, true = attention(*x, cap=2.0)[0], (2 * (q @ k.mT / 16).tanh()).softmax(-1) @ v
    dx, dtrue = torch.autograd.grad(o.square().sum() + true.square().sum(), (x, exact))
    error, of_gradients = (o - true).abs().max(), (dx - dtrue).abs().max()
    print(f"{device}: largest error {error:.1e}, of the gradients {of_gradients:.1e}")
# --8<-- [end:operators]
