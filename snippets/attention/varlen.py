"""Packed sequences: one tensor of all their tokens, none of which sees another's."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
    scale, offs_m, offs_d, seq_q, seq_k, first, last,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    for start_n in range(first, last, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
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
    q_ptr, k_ptr, v_ptr, cu_seqlens_q_ptr, cu_seqlens_k_ptr, o_ptr, lse_ptr, scale,
    stride_qm, stride_qh, stride_qd, stride_kn, stride_kh, stride_kd,
    stride_vn, stride_vh, stride_vd, stride_om, stride_oh, stride_od,
    batch, group, total_q: tl.int32, total_k: tl.int32, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:offsets]
    # Sequence u owns the blocks from cu_seqlens_q[u] // BLOCK_M + u on: which is ours?
    # --8<-- [line:find]
    u = -1
    for first in range(0, batch + 1, 128):
        offs_b = first + tl.arange(0, 128)
        start = tl.load(cu_seqlens_q_ptr + offs_b, mask=offs_b <= batch, other=total_q)
        u += tl.sum((start // BLOCK_M + offs_b <= tl.program_id(0)).to(tl.int32))
    u = tl.maximum(u, 0)
    # Its rows and keys, inside the tensors. Behind the last one is one without keys.
    end = tl.minimum(u + 1, batch)
    # --8<-- [line:rows]
    first_q = tl.minimum(tl.maximum(tl.load(cu_seqlens_q_ptr + u), 0), total_q)
    last_q = tl.minimum(tl.maximum(tl.load(cu_seqlens_q_ptr + end), 0), total_q)
    first_k = tl.minimum(tl.maximum(tl.load(cu_seqlens_k_ptr + u), 0), total_k)
    last_k = tl.minimum(tl.maximum(tl.load(cu_seqlens_k_ptr + end), 0), total_k)
    seq_q = tl.where(u < batch, last_q, total_q) - first_q
    seq_k = last_k - first_k  # below 0 it is no tile, as 0
    # --8<-- [line:outer]
    start_m = tl.maximum(tl.program_id(0) - first_q // BLOCK_M - u, 0) * BLOCK_M
    if start_m >= seq_q:  # of its blocks, a sequence may leave one without rows
        return
    head = tl.program_id(1).to(tl.int64)  # its offsets may pass 2^31
    # --8<-- [line:group]
    kv_head = head // group
    # --8<-- [line:base]
    q_ptr += first_q.to(tl.int64) * stride_qm + head * stride_qh
    k_ptr += first_k.to(tl.int64) * stride_kn + kv_head * stride_kh
    v_ptr += first_k.to(tl.int64) * stride_vn + kv_head * stride_vh
    o_ptr += first_q.to(tl.int64) * stride_om + head * stride_oh
    lse_ptr += head * total_q + first_q
    # --8<-- [end:offsets]
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)

    full, last = seq_k, seq_k
    if CAUSAL:
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale, offs_m, offs_d, seq_q, seq_k, 0, full,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale, offs_m, offs_d, seq_q, seq_k, full, last,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, CAUSAL, ON_BAND=True,
    )  # fmt: skip

    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    lse = m_i + tl.log(l_i)
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    tl.store(o_ptrs, o, mask=mask_m)
    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q, k, v, cu_seqlens_q, cu_seqlens_k) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16, bfloat16 or float32")
    right = f"{q.dtype} of 3 dimensions on {q.device}"
    for name, x in (("q", q), ("k", k), ("v", v)):
        got = f"{x.dtype} of {x.ndim} dimensions on {x.device}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    _, heads, head_dim = q.shape
    if heads > 65535 or not 1 <= head_dim <= 256:
        raise ValueError(f"q is {[*q.shape]}; it must be [any, up to 65535, 1 to 256]")
    if (heads and (k.shape[1] == 0 or heads % k.shape[1])) or k.shape[2] != head_dim:
        right = f"[any, a divisor of {heads}, {head_dim}]"
        raise ValueError(f"k has shape {list(k.shape)}; it must be {right}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")
    right = f"torch.int32 [{max(1, cu_seqlens_q.numel())}] on {q.device}"
    for name, x in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        got = f"{x.dtype} {list(x.shape)} on {x.device}"
        if got != right or not x.is_contiguous():
            raise ValueError(f"{name} is {got}; it must be {right}, contiguous")


# --8<-- [end:checks]
# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    input_precision: str = "ieee", block_m: int = 64, block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each sequence.

    Args:
        q: [total_q, heads, head_dim], float16, bfloat16 or float32, any strides;
            head_dim from 1 to 256, heads up to 65535.
        k, v: [total_k, kv_heads, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        cu_seqlens_q, cu_seqlens_k: [batch + 1], int32, contiguous, device of q: where
            each sequence begins, from 0 on, never falling, and where the last one ends.
            They are not checked. Wrong ones give wrong rows, but lead nowhere else.
        causal: query i of a sequence sees its key j only if j <= i + seq_k - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128.

    Returns:
        o: as q, in its layout. lse: [heads, total_q], float32, natural logarithm.
        A row without keys, of scores of -inf, or behind the end has o = 0, lse = -inf.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    # --8<-- [end:signature]
    check(q, k, v, cu_seqlens_q, cu_seqlens_k)
    (total_q, heads, head_dim), (total_k, kv_heads, _) = q.shape, k.shape
    batch = len(cu_seqlens_q) - 1
    o = torch.empty_like(q)
    lse = torch.empty((heads, total_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    # --8<-- [line:grid]
    blocks = total_q // block_m + batch + 1  # enough for any lengths
    with torch.cuda.device_of(q):
        attention_kernel[(blocks, heads)](
            q, k, v, cu_seqlens_q, cu_seqlens_k, o, lse,
            head_dim**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), *o.stride(),
            batch, heads // kv_heads, total_q, total_k,
            HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            BLOCK_M=block_m, BLOCK_N=block_n, INPUT_PRECISION=input_precision,
            CAUSAL=causal,
            num_warps=4 if block_m * head_dim <= 2**14 else 8, num_stages=2,
            enable_fp_fusion=False,  # s has the rounding that m_new has
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    cu_seqlens = torch.tensor([0, 150, 150, 153, 400], dtype=torch.int32, device=device)
    q, k, v = (torch.randn(400, 4, 80, device=device).half() for _ in range(3))
    o, lse = attention(q, k, v, cu_seqlens, cu_seqlens, causal=True)
    # --8<-- [end:call]
    # The same as one sequence, in which a token sees its own sequence only.
    owner = torch.bucketize(torch.arange(400, device=device), cu_seqlens, right=True)
    seen = (owner[:, None] == owner).tril()
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    error = (o.transpose(0, 1) - expected).abs().max()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
