"""Wrong on purpose: a mask of -1e6 instead of -inf. Blind rows leak a mean of V."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    scale,
    stride_qm,
    stride_qd,
    stride_kn,
    stride_kd,
    stride_vn,
    stride_vd,
    stride_om,
    stride_od,
    seq_q,
    seq_k,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    q = tl.load(
        q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd,
        mask=(offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM),
        other=0.0,
    )  # [BLOCK_M, BLOCK_D]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)

    # --8<-- [start:loop]
    # Stage 0, off the band: tiles that every row of the block sees whole, no mask.
    # Stage 1, on the band: tiles that the diagonal or the end of the keys cuts.
    full, last = seq_k, seq_k
    if CAUSAL:
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    for ON_BAND in tl.static_range(2):
        first, end = (full, last) if ON_BAND else (0, full)
        for start_n in range(first, end, BLOCK_N):
            offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
            mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)
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

            s = tl.dot(q, k.T, input_precision=INPUT_PRECISION) * scale
            if ON_BAND:
                seen = offs_n[None, :] < seq_k
                if CAUSAL:
                    seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
                # Wrong: a finite number. What no key outweighs has a weight after all.
                s = s + tl.where(seen, 0.0, -1e6)  # [BLOCK_M, BLOCK_N]

            m_new = tl.maximum(m_i, tl.max(s, axis=1))
            # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
            p = tl.exp(s - shift[:, None])
            alpha = tl.exp(m_i - shift)
            l_i = l_i * alpha + tl.sum(p, axis=1)
            acc = acc * alpha[:, None]
            acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
            m_i = m_new
    # --8<-- [end:loop]

    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    lse = m_i + tl.log(l_i)
    tl.store(
        o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od,
        o,
        mask=(offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM),
    )
    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    block_m: int = 64,
    block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A wrong causal attention of one head: wrong in rows that see no key.

    Args:
        q: [seq_q, head_dim], float16, bfloat16 or float32, on a GPU (or on the
            CPU under TRITON_INTERPRET=1, without bfloat16). head_dim: 1 to 128.
        k: [seq_k, head_dim], dtype and device of q.
        v: shape, dtype and device of k.
        block_m: rows of q per program: 16, 32, 64 or 128.
        block_n: rows of k and v per step: 16, 32, 64 or 128.

    Returns:
        o: [seq_q, head_dim], dtype of q. In a row that sees no key, a mean of
            rows of v; it must be 0.
        lse: [seq_q], float32, natural logarithm.

    Raises:
        ValueError: an argument is not one of the above.

    Source: a common shortcut; flash2_causal.py masks with -inf.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 2 or not 1 <= x.shape[1] <= 128:
            raise ValueError(
                f"{name} has shape {list(x.shape)}; it must be [seq, head_dim], "
                "head_dim from 1 to 128"
            )
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(
                f"{name} is {x.dtype}; it must be float16, bfloat16 or float32"
            )
        if x.dtype == torch.bfloat16 and triton.knobs.runtime.interpret:
            raise ValueError(
                f"{name} is bfloat16, whose bit patterns the interpreter multiplies; "
                "it must be float16 or float32, or TRITON_INTERPRET unset"
            )
        if (x.dtype, x.device) != (q.dtype, q.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}; it must be as q: "
                f"{q.dtype} on {q.device}"
            )
    if not q.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"q is on {q.device}; it must be on a GPU, or set TRITON_INTERPRET=1"
        )
    if k.shape[1] != q.shape[1]:
        raise ValueError(f"k has head_dim {k.shape[1]}; it must be q's {q.shape[1]}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block not in (16, 32, 64, 128):
            raise ValueError(f"{name} is {block}; it must be 16, 32, 64 or 128")

    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[0], dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    attention_kernel[(triton.cdiv(q.shape[0], block_m),)](
        q,
        k,
        v,
        o,
        lse,
        q.shape[1] ** -0.5,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *o.stride(),
        q.shape[0],
        k.shape[0],
        HEAD_DIM=q.shape[1],
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_D=max(16, triton.next_power_of_2(q.shape[1])),
        INPUT_PRECISION="ieee",
        CAUSAL=True,
        num_stages=2,
    )
    return o, lse


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q = torch.randn(100, 64, device=device)
    k, v = (torch.randn(60, 64, device=device) for _ in range(2))
    o, lse = attention(q, k, v)
    # Query i sees key j if j <= i - 40: queries 0 to 39 see none.
    seen = torch.ones(60, 60, dtype=torch.bool, device=device).tril()
    scores = (q[40:].double() @ k.double().T * 64**-0.5).where(seen, float("-inf"))
    error = (o[40:] - torch.softmax(scores, dim=-1) @ v.double()).abs().max().item()
    print(f"{device}: largest error {error:.1e} in the rows that see a key")
    print(f"largest output in the others: {o[:40].abs().max().item():.2f} instead of 0")
    print(f"their largest lse: {lse[:40].max().item():.0f} instead of -inf")
# --8<-- [end:demo]
