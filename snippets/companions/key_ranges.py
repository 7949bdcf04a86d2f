"""Attention in which each query sees a run of keys, which is what most masks say."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from snippets.backward.autograd import launch, tile


# --8<-- [start:scores]
@triton.jit
def load_range(view, at, offs_m, seq_q, seq_k):
    """The first key that each query sees and the one behind its last: [rows, 1]."""
    first, end = tl.split(tl.load(*tile(view, at, offs_m, seq_q, 2, 2), 0))
    first, end = tl.maximum(first, 0)[:, None], tl.minimum(end, seq_k)[:, None]
    # A query that sees nothing must widen no loop.
    return tl.where(first < end, first, seq_k), tl.where(first < end, end, 0)


@triton.jit
def scores(a, b, keys, first, end, scale, SOFTCAP: tl.constexpr):
    """a b^T * scale, capped, and -inf where a key is unseen; the slope of the cap."""
    s, slope = tl.dot(a, b.T, input_precision="ieee") * scale, 1.0
    if SOFTCAP != 0:  # a float alone is no condition
        x = s / SOFTCAP
        # Near 0 the form with exp would cancel: Lambert's fraction of tanh.
        near = x * (945 + x * x * (105 + x * x)) / (945 + x * x * (420 + 15 * x * x))
        t = tl.where(tl.abs(x) < 0.75, near, 1 - 2 / (1 + tl.exp(2 * x)))
        s, slope = SOFTCAP * t, 1 - t * t
    return tl.where((keys >= first) & (keys < end), s, float("-inf")), slope


# --8<-- [end:scores]
# --8<-- [start:forward]
@triton.jit
def forward_kernel(
    q_view, k_view, v_view, o_view, lse_view, ranges, scale, heads, group,
    seq_q: tl.int32, seq_k: tl.int32, SOFTCAP: tl.constexpr, BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    at, kv_at = (row // heads, row % heads), (row // heads, row % heads // group)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(*tile(q_view, at, offs_m, seq_q, HEAD_DIM, BLOCK_D), 0.0)
    first, end = load_range(ranges, at, offs_m, seq_q, seq_k)
    m_i = tl.full((BLOCK, 1), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK, 1), tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    for start_n in range(tl.min(first), tl.max(end), BLOCK):
        offs_n = start_n + tl.arange(0, BLOCK)
        k = tl.load(*tile(k_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        v = tl.load(*tile(v_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        s, _ = scores(q, k, offs_n[None, :], first, end, scale, SOFTCAP)
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
    a_view, c_view, b_view, d_view, lse_view, delta_view, da_view, dc_view, ranges,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, SOFTCAP: tl.constexpr,
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
    # --8<-- [start:meet]
    low, high = size, size * 0
    if KEYS:  # from the first query that sees one of these keys to the last
        for i in range(0, seq_q, 1024):
            met = i + tl.arange(0, 1024)
            first, end = load_range(ranges, at, met, seq_q, seq_k)
            sees = (first < start + BLOCK) & (end > start)
            low = tl.minimum(low, tl.min(tl.where(sees, met[:, None], size)))
            high = tl.maximum(high, tl.max(tl.where(sees, met[:, None] + 1, 0)))
    else:
        first, end = load_range(ranges, at, own, seq_q, seq_k)
        low, high = tl.min(first), tl.max(end)
    # --8<-- [end:meet]
    for i in range(group if KEYS else 1):
        met_at = (at[0], at[1] * group + i if KEYS else at[1] // group)
        for start_met in range(low, high, BLOCK):
            met = start_met + tl.arange(0, BLOCK)
            b = tl.load(*tile(b_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            d = tl.load(*tile(d_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            m_at, offs_m = (met_at, met) if KEYS else (at, own)
            lse = tl.load(*tile(lse_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            delta = tl.load(*tile(delta_view, m_at, offs_m, seq_q, 1, 1), 0.0)
            first, end = load_range(ranges, at, offs_m, seq_q, seq_k)
            offs_n = own[:, None] if KEYS else met[None, :]
            if KEYS:  # scores of keys and queries, so a row's numbers lie in columns
                first, end, lse, delta = first.T, end.T, lse.T, delta.T
            s, slope = scores(a, b, offs_n, first, end, scale, SOFTCAP)
            # Without the where, a row that saw nothing would be exp(-inf + inf).
            p = tl.where(s == float("-inf"), 0.0, tl.exp(s - lse))
            dp = tl.dot(c, d.T, input_precision="ieee")
            ds = p * (dp - delta) * slope
            da = tl.dot(ds.to(b.dtype), b, da, input_precision="ieee")
            if KEYS:
                dc = tl.dot(p.to(d.dtype), d, dc, input_precision="ieee")
    ptrs, mask = tile(da_view, at, own, own_size, HEAD_DIM, BLOCK_D)
    tl.store(ptrs, da * scale, mask=mask)
    if KEYS:
        ptrs, mask = tile(dc_view, at, own, own_size, HEAD_DIM, BLOCK_D)
        tl.store(ptrs, dc, mask=mask)


# --8<-- [end:backward]
# --8<-- [start:launch]
@torch.library.custom_op("key_ranges::attention", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, cap: float, scale: float, block: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    o, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    launch(forward_kernel, (q, k, v, o, lse[..., None], seen), q, k, cap, scale, block)
    return o, lse


@torch.library.custom_op("key_ranges::attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, o: Tensor, lse: Tensor, do: Tensor,
    cap: float, scale: float, block: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    rows = lse[..., None], (o.float() * do).sum(dim=-1, keepdim=True)
    options = q, k, cap, scale, block
    launch(backward_kernel, (q, do, k, v, *rows, dq, dq, seen), *options, KEYS=False)
    launch(backward_kernel, (k, v, q, do, *rows, dk, dv, seen), *options, KEYS=True)
    return dq, dk, dv


def keep(ctx, inputs, output):
    ctx.options = inputs[4:]
    ctx.save_for_backward(*inputs[:4], *output)


def gradients(ctx, do, _):
    return *backward(*ctx.saved_tensors, do, *ctx.options), None, None, None, None


forward.register_fake(
    lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32))
)
backward.register_fake(lambda *x: tuple(torch.empty_like(y) for y in x[:3]))
forward.register_autograd(gradients, setup_context=keep)


def attention(
    q: Tensor, k: Tensor, v: Tensor, ranges: Tensor, *, scale: float | None = None,
    softcap: float | None = None, block: int | None = None,
) -> Tensor:  # fmt: skip
    """softmax(q k^T * scale) v, in which each query sees a run of keys.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        ranges: [batch, seq_q, 2], int32: the first key of each query, and the one
            behind its last. A query whose range is empty has an output of 0.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        softcap: None, or c: a score s becomes c * tanh(s / c).
        block: rows of a tile, a power of two from 16 to 128; None is 64 or 32.

    Returns o: as q, in its layout. Raises ValueError: a tensor is not one of these.
    Source: Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
    """
    right = q.ndim == 4 and 1 <= q.shape[3] <= 256 and q.shape[0] * q.shape[1] <= 65535
    if not right or q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        right = "float16/32 or bfloat16, 4-D, at most 65535 heads, head_dim 1 to 256"
        raise ValueError(f"q is {q.dtype} of {list(q.shape)}; it must be {right}")
    batch, heads, seq_q, head_dim = q.shape
    kv, seq_k = k.shape[1:3] if k.ndim == 4 else (0, "seq_k")
    kv = kv if (heads % kv == 0 if kv else heads == 0) else f"a divisor of {heads}"
    of_keys = q.dtype, [batch, kv, seq_k, head_dim]
    given = (k, *of_keys), (v, *of_keys), (ranges, torch.int32, [batch, seq_q, 2])
    for name, (x, dtype, shape) in zip(("k", "v", "ranges"), given, strict=True):
        known = isinstance(x, Tensor)
        got = f"{x.dtype} on {x.device} of {list(x.shape)}" if known else repr(x)
        if got != (right := f"{dtype} on {q.device} of {shape}"):
            raise ValueError(f"{name} is {got}; it must be {right}")
    if isinstance(scale, Tensor):
        raise ValueError(f"scale is {scale!r}; it must be a number")
    block = block or (64 if head_dim * q.element_size() <= 512 else 32)
    scale = head_dim**-0.5 if scale is None else scale
    ranges = ranges[:, None].expand(-1, heads, -1, -1)
    return forward(q, k, v, ranges, softcap or 0.0, scale, block)[0]


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = torch.randn(3, 1, 2, 128, 64, device=device)
    # A window of 32 keys, in two documents: the second one begins at row 40.
    rows = torch.arange(128, device=device, dtype=torch.int32)
    first = torch.maximum(rows - 31, 40 * (rows >= 40).int())
    o = attention(q, k, v, torch.stack((first, rows + 1), dim=-1)[None])
    seen = (rows >= first[:, None]) & (rows <= rows[:, None])
    s = (q.double() @ k.double().mT / 8).where(seen, float("-inf"))
    error = (o - torch.softmax(s, dim=-1) @ v.double()).abs().max()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
