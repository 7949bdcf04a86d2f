"""Attention whose values have another width than its keys, forward and backward."""

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
def scores(a, b, own, met, scale, seq_q, seq_k, CAUSAL, KEYS):
    """a b^T * scale; -inf where a query does not see a key, or one does not exist."""
    row, col = own[:, None], met[None, :]
    offs_m, offs_n = (col, row) if KEYS else (row, col)
    seen = (offs_m < seq_q) & (offs_n < seq_k)
    if CAUSAL:
        seen &= offs_n <= offs_m + seq_k - seq_q
    return tl.where(seen, tl.dot(a, b.T, input_precision="ieee") * scale, float("-inf"))


# --8<-- [end:tiles]
# --8<-- [start:kernels]
@triton.jit
def forward_kernel(
    q_view, k_view, v_view, o_view, lse_view, scale, heads, group,
    seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    HEAD_DIM_V: tl.constexpr, BLOCK_DV: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    at, kv_at = (row // heads, row % heads), (row // heads, row % heads // group)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(*tile(q_view, at, offs_m, seq_q, HEAD_DIM, BLOCK_D), 0.0)
    m_i = tl.full((BLOCK, 1), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK, 1), tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_DV), tl.float32)
    last = (tl.program_id(0) + 1) * BLOCK + seq_k - seq_q
    for start_n in range(0, tl.minimum(last, seq_k) if CAUSAL else seq_k, BLOCK):
        offs_n = start_n + tl.arange(0, BLOCK)
        k = tl.load(*tile(k_view, kv_at, offs_n, seq_k, HEAD_DIM, BLOCK_D), 0.0)
        v = tl.load(*tile(v_view, kv_at, offs_n, seq_k, HEAD_DIM_V, BLOCK_DV), 0.0)
        s = scores(q, k, offs_m, offs_n, scale, seq_q, seq_k, CAUSAL, KEYS=False)
        m_new = tl.maximum(m_i, tl.max(s, axis=1, keep_dims=True))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p, alpha = tl.exp(s - shift), tl.exp(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, axis=1, keep_dims=True)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha, input_precision="ieee")
        m_i = m_new
    ptrs, mask = tile(o_view, at, offs_m, seq_q, HEAD_DIM_V, BLOCK_DV)
    tl.store(ptrs, acc / tl.where(l_i == 0.0, 1.0, l_i), mask=mask)
    ptrs, mask = tile(lse_view, at, offs_m, seq_q, 1, 1)
    tl.store(ptrs, m_i + tl.log(l_i), mask=mask)


@triton.jit
def backward_kernel(
    a_view, c_view, b_view, d_view, lse_view, delta_view, da_view, dc_view,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    HEAD_DIM_V: tl.constexpr, BLOCK_DV: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Owns a block of (q, do) and meets (k, v); with KEYS, the other way round."""
    row, start = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK
    at, own = (row // heads, row % heads), start + tl.arange(0, BLOCK)
    own_size, size = (seq_k, seq_q) if KEYS else (seq_q, seq_k)
    a = tl.load(*tile(a_view, at, own, own_size, HEAD_DIM, BLOCK_D), 0.0)
    c = tl.load(*tile(c_view, at, own, own_size, HEAD_DIM_V, BLOCK_DV), 0.0)
    da = tl.zeros((BLOCK, BLOCK_D), tl.float32)
    dc = tl.zeros((BLOCK, BLOCK_DV), tl.float32)
    shift = seq_k - seq_q
    first = tl.maximum(start - shift, 0) if CAUSAL and KEYS else 0
    last = tl.minimum(start + BLOCK + shift, size) if CAUSAL and not KEYS else size
    for i in range(group if KEYS else 1):
        met_at = (at[0], at[1] * group + i if KEYS else at[1] // group)
        for start_met in range(first, last, BLOCK):
            met = start_met + tl.arange(0, BLOCK)
            b = tl.load(*tile(b_view, met_at, met, size, HEAD_DIM, BLOCK_D), 0.0)
            d = tl.load(*tile(d_view, met_at, met, size, HEAD_DIM_V, BLOCK_DV), 0.0)
            s = scores(a, b, own, met, scale, seq_q, seq_k, CAUSAL, KEYS)
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
        ptrs, mask = tile(dc_view, at, own, own_size, HEAD_DIM_V, BLOCK_DV)
        tl.store(ptrs, dc, mask=mask)


# --8<-- [end:kernels]
# --8<-- [start:operators]
def launch(kernel, views, q, v, causal, scale, block, **more) -> None:
    """A program for each block of rows of each head of the first of `views`."""
    batch, heads, rows, _ = views[0].shape
    widths = (q.shape[3], v.shape[3])
    padded = [(d, max(16, triton.next_power_of_2(d))) for d in widths]
    with torch.cuda.device_of(q):
        kernel[(triton.cdiv(rows, block), batch * heads)](
            *((x, *x.stride()) for x in views), scale, heads,
            q.shape[1] // max(1, v.shape[1]), q.shape[2], v.shape[2], causal, block,
            *padded[0], *padded[1], **more,
            num_warps=4 if max(widths) * q.element_size() <= 256 else 8, num_stages=2,
        )  # fmt: skip


def outputs(q, v) -> tuple[Tensor, Tensor]:
    """o in the layout of q, as wide as v, and lse; nothing is in them."""
    o = torch.empty_like(q[..., :1].expand(*q.shape[:3], v.shape[3]))
    return o, q.new_empty(q.shape[:3], dtype=torch.float32)


@torch.library.custom_op("flash::value_dim_attention", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, block: int
) -> tuple[Tensor, Tensor]:
    o, lse = outputs(q, v)
    launch(forward_kernel, (q, k, v, o, lse[..., None]), q, v, causal, scale, block)
    return o, lse


@torch.library.custom_op("flash::value_dim_attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, dlse: Tensor,
    causal: bool, scale: float, block: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    delta = (o.float() * do).sum(dim=-1) - dlse
    rows, options = (lse[..., None], delta[..., None]), (q, v, causal, scale, block)
    launch(backward_kernel, (q, do, k, v, *rows, dq, dq), *options, KEYS=False)
    launch(backward_kernel, (k, v, q, do, *rows, dk, dv), *options, KEYS=True)
    return dq, dk, dv


def keep(ctx, inputs, output):
    ctx.options = inputs[3:]
    ctx.save_for_backward(*inputs[:3], *output)


def gradients(ctx, do, dlse):
    return *backward(*ctx.saved_tensors, do, dlse, *ctx.options), None, None, None


forward.register_fake(lambda q, k, v, *_: outputs(q, v))
backward.register_fake(lambda *x: tuple(torch.empty_like(y) for y in x[:3]))
forward.register_autograd(gradients, setup_context=keep)


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False,
    scale: float | None = None, block: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores; autograd knows both.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256, batch * heads up to 65535.
        k: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        v: [batch, kv_heads, seq_k, head_dim_v], as k; head_dim_v from 1 to 256.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        block: rows of a tile, a power of two from 16 to 128; None is 64 or 32.
    Returns o: in the layout of q, as wide as v; lse: [batch, heads, seq_q], float32.
    Raises ValueError: a tensor is not one of the above.
    Source: DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1.
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
    width = v.shape[3] if v.ndim == 4 and 1 <= v.shape[3] <= 256 else head_dim
    for name, x, shape in ("k", k, of_keys), ("v", v, (*of_keys[:-1], width)):
        if (x.shape, x.dtype, x.device) != (shape, q.dtype, q.device):
            got = f"{x.dtype} on {x.device} of {list(x.shape)}"
            right = f"{q.dtype} on {q.device} of {list(shape)}"
            raise ValueError(f"{name} is {got}; it must be {right}")
    if isinstance(scale, Tensor):
        raise ValueError(f"scale is {scale!r}; it must be a number")
    block = block or (64 if max(head_dim, width) * q.element_size() <= 512 else 32)
    return forward(q, k, v, causal, head_dim**-0.5 if scale is None else scale, block)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    given = [torch.randn(1, 2, 100, d, device=device) for d in (48, 48, 32)]
    q, k, v = exact = [x.double().requires_grad_() for x in given]
    o, _ = attention(*(x.requires_grad_() for x in given))
    true = (q @ k.mT * 48**-0.5).softmax(-1) @ v
    found = o, *torch.autograd.grad(o.square().sum(), given)
    wanted = true, *torch.autograd.grad(true.square().sum(), exact)
    errors = [(y - z).abs().max() for y, z in zip(found, wanted, strict=True)]
    print(f"{device}: largest error {errors[0]:.1e}, gradients {max(errors[1:]):.1e}")
# --8<-- [end:operators]
