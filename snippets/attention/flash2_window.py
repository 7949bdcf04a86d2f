"""FlashAttention-2 in a sliding window: a query sees its own and the last few keys."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
    scale, offs_m, offs_d, seq_q, seq_k, window, first, last,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    INDEX: tl.constexpr, CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    for start_n in range(first, last, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)
        k_ptrs = k_ptr + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]

        s = tl.dot(q, k.T, input_precision=INPUT_PRECISION) * scale
        if ON_BAND:
            seen = offs_n[None, :] < seq_k
            if CAUSAL:
                seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
            if window is not None:
                # --8<-- [line:edge]
                seen &= offs_n[None, :] > offs_m[:, None] + seq_k - seq_q - window
            s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - shift[:, None])
        alpha = tl.exp(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    return m_i, l_i, acc


# --8<-- [end:loop]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale,
    stride_qb, stride_qh, stride_qm, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_om, stride_od,
    heads, group, seq_q: tl.int32, seq_k: tl.int32, window, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # Which batch and head: int64, because their offsets may pass 2^31.
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    kv_head = head // group
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    o_ptr += batch * stride_ob + head * stride_oh
    lse_ptr += (batch * heads + head) * seq_q

    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)

    # --8<-- [start:stages]
    full, last = seq_k, seq_k
    if CAUSAL:
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    begin, whole = 0, 0
    if window is not None:
        # --8<-- [line:begin]
        begin = tl.maximum(start_m + 1 + seq_k - seq_q - window, 0) // BLOCK_N * BLOCK_N
        # --8<-- [line:whole]
        whole = tl.maximum(start_m + BLOCK_M + seq_k - seq_q - window, 0)
        whole = tl.minimum(tl.cdiv(whole, BLOCK_N) * BLOCK_N, full)
    # Off the band: tiles that every row of the block sees whole, no mask.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale, offs_m, offs_d, seq_q, seq_k, window, whole, full,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, INDEX, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    # On the band: tiles that the diagonal or the end of the keys cuts.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale, offs_m, offs_d, seq_q, seq_k, window, full, last,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, INDEX, CAUSAL, ON_BAND=True,
    )  # fmt: skip
    if window is not None:
        # The other edge of the band: tiles that the beginning of the window cuts.
        m_i, l_i, acc = attend(
            m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
            scale, offs_m, offs_d, seq_q, seq_k, window, begin, whole,
            HEAD_DIM, BLOCK_N, INPUT_PRECISION, INDEX, CAUSAL, ON_BAND=True,
        )  # fmt: skip
    # --8<-- [end:stages]

    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    lse = m_i + tl.log(l_i)
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    tl.store(o_ptrs, o, mask=mask_m)
    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"{name} has {x.ndim} dimensions; it must have 4")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(f"{name} is {x.dtype}; it must be float16/32 or bfloat16")
        if (x.dtype, x.device) != (q.dtype, q.device):
            as_q = f"{q.dtype} on {q.device}, as q"
            raise ValueError(f"{name} is {x.dtype} on {x.device}; it must be {as_q}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    batch, heads, _, head_dim = q.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if batch * heads > 65535:
        raise ValueError(f"q has {batch} * {heads} heads; it must have at most 65535")
    if k.shape[0] != batch:
        raise ValueError(f"k has batch {k.shape[0]}; it must be q's {batch}")
    if heads and (k.shape[1] == 0 or heads % k.shape[1]):
        raise ValueError(f"k has {k.shape[1]} heads; it must divide q's {heads}")
    if k.shape[3] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[3]}; it must be q's {head_dim}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")


# --8<-- [end:checks]
# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    window: int | None = None, scale: float | None = None,
    input_precision: str = "ieee", block_m: int = 64, block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a GPU, any
            strides; head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, kv_heads, seq_k, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        window: None, or how many keys up to its own a query sees; needs causal=True.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128.

    Returns:
        o: as q, in its layout. lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    # --8<-- [end:signature]
    check(q, k, v)
    if window is not None:
        if window < 1:
            raise ValueError(f"window is {window}; it must be None or at least 1")
        if not causal:
            raise ValueError("causal is False; with a window it must be True")
        window = min(window, k.shape[2])  # so that differences fit in 32 bits
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    # Offsets inside a head: 32 bits are faster, and enough unless it is very large.
    spans = (x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in (q, k, v, o))
    with torch.cuda.device_of(q):
        attention_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            q, k, v, o, lse, head_dim**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), *o.stride(),
            heads, heads // kv_heads, seq_q, seq_k, window,
            HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            BLOCK_M=block_m, BLOCK_N=block_n, INPUT_PRECISION=input_precision,
            INDEX=tl.int32 if max(spans) < 2**31 else tl.int64, CAUSAL=causal,
            num_warps=4 if block_m * head_dim <= 2**14 else 8, num_stages=2,
            enable_fp_fusion=False,  # s has the rounding that m_new has
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    q = torch.randn(2, 4, 150, 80, device=device).half()
    k, v = (torch.randn(2, 2, 200, 80, device=device).half() for _ in range(2))
    o, _ = attention(q, k, v, causal=True, window=128)
    # --8<-- [end:call]
    k, v = (x.double().repeat_interleave(2, dim=1) for x in (k, v))
    seen = torch.ones(150, 200, device=device).tril(50).triu(50 - 127).bool()
    scores = (q.double() @ k.mT * 80**-0.5).where(seen, float("-inf"))
    error = (o - torch.softmax(scores, dim=-1) @ v).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
