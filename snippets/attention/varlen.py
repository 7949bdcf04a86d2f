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
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    cu_seqlens_q_ptr,
    cu_seqlens_k_ptr,
    o_ptr,
    lse_ptr,
    scale,
    stride_qm,
    stride_qh,
    stride_qd,
    stride_kn,
    stride_kh,
    stride_kd,
    stride_vn,
    stride_vh,
    stride_vd,
    stride_om,
    stride_oh,
    stride_od,
    batch,
    group,
    total_q: tl.int32,
    total_k: tl.int32,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
):
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

    # --8<-- [start:setup]
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    # --8<-- [line:load_q]
    q = tl.load(
        q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd,
        mask=(offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM),
        other=0.0,
    )  # [BLOCK_M, BLOCK_D]
    # --8<-- [line:initialise]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [end:setup]

    # --8<-- [start:loop]
    # Stage 0, off the band: tiles that every row of the block sees whole, no mask.
    # Stage 1, on the band: tiles that the diagonal or the end of the keys cuts.
    full, last = seq_k, seq_k
    if CAUSAL:
        # --8<-- [line:full]
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        # --8<-- [line:last]
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    for ON_BAND in tl.static_range(2):
        first, end = (full, last) if ON_BAND else (0, full)
        # --8<-- [line:inner]
        for start_n in range(first, end, BLOCK_N):
            offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
            mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)
            # --8<-- [line:load_kv]
            k = tl.load(
                k_ptr + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd,
                mask=mask_n,
                other=0.0,
            )  # [BLOCK_N, BLOCK_D]
            v = tl.load(
                v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd,
                mask=mask_n,
                other=0.0,
            )  # [BLOCK_N, BLOCK_D]

            # --8<-- [line:scores]
            s = tl.dot(q, k.T, input_precision=INPUT_PRECISION) * scale
            # --8<-- [line:mask]
            if ON_BAND:
                seen = offs_n[None, :] < seq_k
                if CAUSAL:
                    seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
                s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

            # --8<-- [line:max]
            m_new = tl.maximum(m_i, tl.max(s, axis=1))
            # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
            # --8<-- [line:weights]
            p = tl.exp(s - shift[:, None])
            # --8<-- [line:sum]
            alpha = tl.exp(m_i - shift)
            l_i = l_i * alpha + tl.sum(p, axis=1)
            # --8<-- [line:output]
            acc = acc * alpha[:, None]
            acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
            m_i = m_new
    # --8<-- [end:loop]

    # --8<-- [start:finish]
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    # --8<-- [line:divide]
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    # --8<-- [line:lse]
    lse = m_i + tl.log(l_i)
    # --8<-- [line:store]
    tl.store(
        o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od,
        o,
        mask=(offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM),
    )
    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]


# --8<-- [start:checks]
MAX_SEQ = 2**31 - 256  # so that a block beyond the end is counted in 32 bits


def check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 3:
            raise ValueError(
                f"{name} has {x.ndim} dimensions; it must have 3: "
                "[total, heads, head_dim]"
            )
        if len(x) > MAX_SEQ:
            raise ValueError(f"{name} has total {len(x)}; it must be up to {MAX_SEQ}")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(
                f"{name} is {x.dtype}; it must be float16, bfloat16 or float32"
            )
        if x.dtype == torch.bfloat16 and triton.knobs.runtime.interpret:
            raise ValueError(
                f"{name} is bfloat16, whose bit patterns the interpreter multiplies; "
                "it must be float16 or float32, or TRITON_INTERPRET unset"
            )
        if not x.is_cuda and not triton.knobs.runtime.interpret:
            raise ValueError(
                f"{name} is on {x.device}; it must be on a GPU, or set "
                "TRITON_INTERPRET=1"
            )
        if (x.dtype, x.device) != (q.dtype, q.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}; it must be as q: "
                f"{q.dtype} on {q.device}"
            )
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
        if x.ndim != 1 or not len(x) or not x.is_contiguous():
            raise ValueError(
                f"{name} has shape {list(x.shape)}; it must be [batch + 1], contiguous"
            )
        if (x.dtype, x.device) != (torch.int32, q.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}; it must be torch.int32 "
                f"on {q.device}"
            )
    if len(cu_seqlens_q) != len(cu_seqlens_k):
        raise ValueError(
            f"cu_seqlens_k has {len(cu_seqlens_k)} values; it must have as many as "
            f"cu_seqlens_q: {len(cu_seqlens_q)}"
        )


# --8<-- [end:checks]


# --8<-- [start:launch]
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    input_precision: str = "ieee",
    block_m: int = 64,
    block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each sequence.

    Sequence i is q[cu_seqlens_q[i] : cu_seqlens_q[i + 1]] with the keys and values
    between cu_seqlens_k[i] and cu_seqlens_k[i + 1].

    Args:
        q: [total_q, heads, head_dim], float16, bfloat16 or float32, any strides,
            on a GPU (or on the CPU under TRITON_INTERPRET=1, without bfloat16).
            heads: at most 65535; head_dim: 1 to 256; total_q, and total_k below: at
            most 2^31 - 256.
        k: [total_k, kv_heads, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: shape of k, dtype and device of q, any strides.
        cu_seqlens_q: [batch + 1], int32, contiguous, device of q: where each sequence
            begins, from 0 on, never falling; the last value is where the last one
            ends. The values are not checked, for that would wait for the GPU: wrong
            ones give wrong rows, but no access outside the tensors.
        cu_seqlens_k: the same for k and v.
        causal: query i of a sequence sees its key j only if j <= i + seq_k - seq_q, in
            the lengths of the sequence: its last query sees all its keys.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (faster, 10 bits of
            fraction). Without effect on the other dtypes.
        block_m: rows of q per program, a power of two from 16 to 128.
        block_n: rows of k and v per step, a power of two from 16 to 128.

    Returns:
        o: [total_q, heads, head_dim], dtype of q, contiguous, without a gradient.
        lse: [heads, total_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf. So
        have the rows behind the last sequence.

    Raises:
        ValueError: an argument is not one of the above.
        triton.OutOfResources: the tiles do not fit into shared memory.

    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    check(q, k, v, cu_seqlens_q, cu_seqlens_k)
    (total_q, heads, head_dim), (total_k, kv_heads, _) = q.shape, k.shape
    batch = len(cu_seqlens_q) - 1
    scale = head_dim**-0.5 if scale is None else float(scale)
    if not abs(scale) <= torch.finfo(torch.float32).max:
        raise ValueError(f"scale is {scale}; it must be finite in float32")
    if input_precision not in ("ieee", "tf32"):
        raise ValueError(
            f"input_precision is {input_precision!r}; it must be 'ieee' or 'tf32'"
        )
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block not in (16, 32, 64, 128):
            raise ValueError(f"{name} is {block}; it must be 16, 32, 64 or 128")

    o = torch.empty((total_q, heads, head_dim), dtype=q.dtype, device=q.device)
    lse = torch.empty((heads, total_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    # Enough for any lengths, so that nobody needs to know them here.
    # --8<-- [line:grid]
    blocks = total_q // block_m + batch + 1
    with torch.cuda.device_of(q):
        attention_kernel[(blocks, heads)](
            q,
            k,
            v,
            cu_seqlens_q,
            cu_seqlens_k,
            o,
            lse,
            scale,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            *o.stride(),
            batch,
            heads // kv_heads,
            total_q,
            total_k,
            HEAD_DIM=head_dim,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            INPUT_PRECISION=input_precision,
            CAUSAL=causal,
            num_warps=4 if block_m * head_dim <= 2**14 else 8,
            num_stages=2,
            enable_fp_fusion=False,  # s has the rounding that m_new has
        )
    return o, lse


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ends = [0, 150, 150, 153, 400]  # four sequences, the second one empty
    cu_seqlens = torch.tensor(ends, dtype=torch.int32, device=device)
    q = torch.randn(400, 4, 80, device=device).half()
    k, v = (torch.randn(400, 2, 80, device=device).half() for _ in range(2))
    o, lse = attention(q, k, v, cu_seqlens, cu_seqlens, causal=True)
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
