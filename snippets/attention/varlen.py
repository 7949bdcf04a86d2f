"""Packed sequences: one tensor of all their tokens, none of which sees another's."""

import torch
import triton
import triton.language as tl


# --8<-- [start:bound]
@triton.jit
def load_bound(cu_seqlens_ptr, total):
    """Where a sequence begins: wrong values must not lead out of the tensors."""
    return tl.minimum(tl.maximum(tl.load(cu_seqlens_ptr), 0), total)


# --8<-- [end:bound]


# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
    scale, offs_m, offs_d, seq_q, seq_k, first, last,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    """The state m_i, l_i, acc after the keys from `first` to `last`."""
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
    # Sequence i owns the blocks from cu_seqlens_q[i] // BLOCK_M + i on: which is ours?
    # --8<-- [line:find]
    i = -1
    for first in range(0, batch + 1, 128):
        offs_b = first + tl.arange(0, 128)
        start = tl.load(cu_seqlens_q_ptr + offs_b, mask=offs_b <= batch, other=total_q)
        i += tl.sum((start // BLOCK_M + offs_b <= tl.program_id(0)).to(tl.int32))
    i = tl.maximum(i, 0)
    # Its rows and keys. Rows behind the last sequence are one more, without keys.
    # --8<-- [line:rows]
    first_q = load_bound(cu_seqlens_q_ptr + i, total_q)
    last_q = load_bound(cu_seqlens_q_ptr + tl.minimum(i + 1, batch), total_q)
    first_k = load_bound(cu_seqlens_k_ptr + i, total_k)
    last_k = load_bound(cu_seqlens_k_ptr + tl.minimum(i + 1, batch), total_k)
    seq_q = tl.where(i < batch, last_q, total_q) - first_q
    seq_k = last_k - first_k  # below 0 it is no tile, as 0
    # --8<-- [line:outer]
    start_m = tl.maximum(tl.program_id(0) - first_q // BLOCK_M - i, 0) * BLOCK_M
    if start_m >= seq_q:  # of its blocks, a sequence may leave one without rows
        return
    # Which head: int64, because its offsets may pass 2^31.
    head = tl.program_id(1).to(tl.int64)
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
    # Off the band: tiles that every row of the block sees whole, no mask.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd,
        scale, offs_m, offs_d, seq_q, seq_k, 0, full,
        HEAD_DIM, BLOCK_N, INPUT_PRECISION, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    # On the band: tiles that the diagonal or the end of the keys cuts.
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
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 3:
            raise ValueError(f"{name} has {x.ndim} dimensions; it must have 3")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(f"{name} is {x.dtype}; it must be float16/32 or bfloat16")
        if (x.dtype, x.device) != (q.dtype, q.device):
            as_q = f"{q.dtype} on {q.device}, as q"
            raise ValueError(f"{name} is {x.dtype} on {x.device}; it must be {as_q}")
        if torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this forward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")
    _, heads, head_dim = q.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if heads > 65535:
        raise ValueError(f"q has {heads} heads; it must have at most 65535")
    if heads and (k.shape[1] == 0 or heads % k.shape[1]):
        raise ValueError(f"k has {k.shape[1]} heads; it must divide q's {heads}")
    if k.shape[2] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[2]}; it must be q's {head_dim}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")
    for name, x in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        got = f"{x.dtype} {list(x.shape)} on {x.device}"
        right = f"torch.int32 [{max(1, cu_seqlens_q.numel())}] on {q.device}"
        if got != right or not x.is_contiguous():
            raise ValueError(f"{name} is {got}; it must be {right}, contiguous")


# --8<-- [end:checks]


# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, input_precision: str = "ieee",
    block_m: int = 64, block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each sequence.

    Sequence i is q[cu_seqlens_q[i] : cu_seqlens_q[i + 1]] with the keys and values
    between cu_seqlens_k[i] and cu_seqlens_k[i + 1].

    Args:
        q: [total_q, heads, head_dim], float16, bfloat16 or float32, on a GPU, any
            strides; head_dim from 1 to 256, heads up to 65535.
        k: [total_k, kv_heads, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: as k.
        cu_seqlens_q: [batch + 1], int32, contiguous, device of q: where each sequence
            begins, from 0 on, never falling; the last value is where the last one
            ends. The values are not checked, for that would wait for the GPU: wrong
            ones give wrong rows, but no access outside the tensors.
        cu_seqlens_k: the same for k and v.
        causal: query i of a sequence sees its key j only if j <= i + seq_k - seq_q, in
            the lengths of the sequence.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        block_m: queries of a program, a power of two from 16 to 128.
        block_n: keys of a step, a power of two from 16 to 128.

    Returns:
        o: as q, in its layout, and lse: [heads, total_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf. So
        have the rows behind the last sequence.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

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
    # Enough for any lengths, so that nobody needs to know them here.
    # --8<-- [line:grid]
    blocks = total_q // block_m + batch + 1
    with torch.cuda.device_of(q):
        attention_kernel[(blocks, heads)](
            q, k, v, cu_seqlens_q, cu_seqlens_k, o, lse,
            head_dim**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), *o.stride(),
            batch, heads // kv_heads, total_q, total_k,
            HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            INPUT_PRECISION=input_precision, CAUSAL=causal,
            num_warps=4 if block_m * head_dim <= 2**14 else 8,
            num_stages=2,
            enable_fp_fusion=False,  # s has the rounding that m_new has
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    ends = [0, 150, 150, 153, 400]  # four sequences, the second one empty
    cu_seqlens = torch.tensor(ends, dtype=torch.int32, device=device)
    q = torch.randn(400, 4, 80, device=device).half()
    k, v = (torch.randn(400, 2, 80, device=device).half() for _ in range(2))
    o, lse = attention(q, k, v, cu_seqlens, cu_seqlens, causal=True)
    # --8<-- [end:call]
    # The same as one sequence, in which a token sees its own sequence only.
    owner = torch.bucketize(torch.arange(400, device=device), cu_seqlens, right=True)
    seen = (owner[:, None] == owner).tril()
    k, v = (x.double().repeat_interleave(2, dim=1) for x in (k, v))
    scores = torch.einsum("ihd,jhd->hij", q.double(), k) * 80**-0.5
    scores = scores.where(seen, float("-inf"))
    expected = torch.einsum("hij,jhd->ihd", torch.softmax(scores, dim=-1), v)
    error = (o - expected).abs().max().item()
    lse_error = (lse - torch.logsumexp(scores, dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, of the logsumexp {lse_error:.1e}")
# --8<-- [end:demo]
