"""FlashAttention-2, tuned: base 2, autotuned tiles, an order that suits the L2."""

import math

import torch
import triton
import triton.language as tl

LN_2 = tl.constexpr(math.log(2))


# --8<-- [start:configs]
CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
    for m, n, warps, stages in [
        (32, 32, 4, 1), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2),
        (128, 32, 8, 3), (128, 64, 4, 2), (128, 64, 8, 2), (128, 64, 8, 3),
    ]
]  # fmt: skip
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3}  # untuned


# --8<-- [end:configs]
# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
    scale_log2, offs_m, offs_d, seq_q, seq_k, first, last,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    INDEX: tl.constexpr, CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    for start_n in range(first, last, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        mask_n = offs_d[None, :] < HEAD_DIM
        if ON_BAND:
            mask_n &= offs_n[:, None] < seq_k
        k_ptrs = k_ptr + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]

        # --8<-- [line:scores]
        s = tl.dot(q, k.T, input_precision=INPUT_PRECISION)
        if ON_BAND:
            seen = offs_n[None, :] < seq_k
            if CAUSAL:
                seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
            s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

        # --8<-- [line:max]
        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale_log2)
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:weights]
        p = tl.exp2(s * scale_log2 - shift[:, None])
        # --8<-- [line:alpha]
        alpha = tl.exp2(m_i - shift)
        # --8<-- [line:sum]
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    return m_i, l_i, acc


# --8<-- [end:loop]
@triton.autotune(CONFIGS, key=["BLOCK_D", "CAUSAL", "length"])
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale_log2,
    stride_qb, stride_qh, stride_qm, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_om, stride_od,
    heads, group, seq_q: tl.int32, seq_k: tl.int32, length, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:offsets]
    blocks = tl.cdiv(seq_q, BLOCK_M)
    # --8<-- [line:batch]
    batch = (tl.program_id(0) // blocks // heads).to(tl.int64)  # offsets pass 2^31
    head = (tl.program_id(0) // blocks % heads).to(tl.int64)
    kv_head = head // group
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    o_ptr += batch * stride_ob + head * stride_oh
    lse_ptr += (batch * heads + head) * seq_q
    block = tl.program_id(0) % blocks
    # --8<-- [line:outer]
    # The last block of a causal head works longest: it goes first.
    start_m = (blocks - 1 - block if CAUSAL else block) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [end:offsets]
    full, last = seq_k, seq_k
    if CAUSAL:
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    # Off the band: tiles that every row of the block sees whole, no mask.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale_log2, offs_m, offs_d, seq_q, seq_k, 0, full,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, INDEX, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    # On the band: tiles that the diagonal or the end of the keys cuts.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale_log2, offs_m, offs_d, seq_q, seq_k, full, last,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, INDEX, CAUSAL, ON_BAND=True,
    )  # fmt: skip

    # --8<-- [start:finish]
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    # --8<-- [line:lse]
    lse = (m_i + tl.log2(l_i)) * LN_2
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    tl.store(o_ptrs, o, mask=mask_m)
    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16, bfloat16 or float32")
    right = f"{q.dtype} of 4 dimensions on {q.device}"
    for name, x in (("q", q), ("k", k), ("v", v)):
        got = f"{x.dtype} of {x.ndim} dimensions on {x.device}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    batch, heads, _, head_dim = q.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    uneven = heads and (k.shape[1] == 0 or heads % k.shape[1])
    if k.shape[0] != batch or uneven or k.shape[3] != head_dim:
        right = f"[{batch}, a divisor of {heads}, any, {head_dim}]"
        raise ValueError(f"k has shape {list(k.shape)}; it must be {right}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")


# --8<-- [end:checks]
# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, input_precision: str = "ieee",
    tile: dict[str, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256.
        k, v: [batch, kv_heads, seq_k, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        tile: such as TILE; if None, the autotuner times all CONFIGS, for seconds.

    Returns:
        o: as q, in its layout. lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    check(q, k, v)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    scale = head_dim**-0.5 if scale is None else scale
    if isinstance(scale, torch.Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    if q.dtype == torch.float32:  # exact products of large tiles compile for minutes
        tile = tile or CONFIGS[0].all_kwargs()
    kernel = attention_kernel.fn if tile else attention_kernel
    # Offsets inside a head: 32 bits are enough unless it is very large.
    spans = (x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in (q, k, v, o))
    with torch.cuda.device_of(q):
        kernel[lambda named: (triton.cdiv(seq_q, named["BLOCK_M"]) * batch * heads,)](
            q, k, v, o, lse, scale * math.log2(math.e),
            *q.stride(), *k.stride(), *v.stride(), *o.stride(),
            heads, heads // kv_heads, seq_q, seq_k,
            length=min(8192, max(512, triton.next_power_of_2(max(seq_q, seq_k)))),
            HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            INPUT_PRECISION=input_precision, CAUSAL=causal,
            INDEX=tl.int32 if max(spans) < 2**31 else tl.int64, **(tile or {}),
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(2, 4, 200, 80, device=device).half() for _ in range(3))
    tile = TILE if device == "cpu" else None  # only a GPU can be timed
    o, lse = attention(q, k, v, causal=True, tile=tile)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    error = (o - sdpa(q.double(), k.double(), v.double(), is_causal=True)).abs().max()
    print(f"{device}: largest error {error:.1e},", tile or attention_kernel.best_config)
# --8<-- [end:demo]
