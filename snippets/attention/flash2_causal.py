"""FlashAttention-2, causal: tiles above the diagonal skipped, those on it masked."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    scale,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_om,
    stride_od,
    heads,
    group,
    seq_q: tl.int32,
    seq_k: tl.int32,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    # --8<-- [start:offsets]
    # Which batch and head: int64, because their offsets may pass 2^31.
    # --8<-- [line:batch]
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    # --8<-- [line:group]
    kv_head = head // group
    # --8<-- [line:base]
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    o_ptr += batch * stride_ob + head * stride_oh
    lse_ptr += (batch * heads + head) * seq_q
    # --8<-- [end:offsets]

    # --8<-- [start:setup]
    # --8<-- [line:outer]
    start_m = tl.program_id(0) * BLOCK_M
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


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(
                f"{name} has {x.ndim} dimensions; it must have 4: "
                "[batch, heads, seq, head_dim]"
            )
        if x.shape[2] > MAX_SEQ:
            raise ValueError(f"{name} has seq {x.shape[2]}; it must be up to {MAX_SEQ}")
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
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    input_precision: str = "ieee",
    block_m: int = 64,
    block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, any strides,
            on a GPU (or on the CPU under TRITON_INTERPRET=1, without bfloat16).
            batch * heads: at most 65535; head_dim: 1 to 256; seq_q, and seq_k below:
            at most 2^31 - 256.
        k: [batch, kv_heads, seq_k, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: shape of k, dtype and device of q, any strides.
        causal: query i sees key j only if j <= i + seq_k - seq_q: the last query sees
            every key, whatever the lengths.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (faster, 10 bits of
            fraction). Without effect on the other dtypes.
        block_m: rows of q per program, a power of two from 16 to 128.
        block_n: rows of k and v per step, a power of two from 16 to 128.

    Returns:
        o: [batch, heads, seq_q, head_dim], dtype of q, contiguous, without a gradient.
        lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises:
        ValueError: an argument is not one of the above.
        triton.OutOfResources: the tiles do not fit into shared memory.

    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    check(q, k, v)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
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

    o = torch.empty((batch, heads, seq_q, head_dim), dtype=q.dtype, device=q.device)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    with torch.cuda.device_of(q):
        attention_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            q,
            k,
            v,
            o,
            lse,
            scale,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            *o.stride(),
            heads,
            heads // kv_heads,
            seq_q,
            seq_k,
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
    q = torch.randn(2, 4, 150, 80, device=device).half()
    k, v = (torch.randn(2, 2, 200, 80, device=device).half() for _ in range(2))
    o, lse = attention(q, k, v, causal=True)
    k, v = (x.double().repeat_interleave(2, dim=1) for x in (k, v))
    seen = torch.ones(150, 200, dtype=torch.bool, device=device).tril(200 - 150)
    scores = (q.double() @ k.mT * 80**-0.5).where(seen, float("-inf"))
    error = (o - torch.softmax(scores, dim=-1) @ v).abs().max().item()
    lse_error = (lse - torch.logsumexp(scores, dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, of the logsumexp {lse_error:.1e}")
# --8<-- [end:demo]
