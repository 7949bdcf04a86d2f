"""Wrong on purpose: a mask of -1e6 instead of -inf. Blind rows leak a mean of V.

flash2_causal.py masks with -inf. Tensors are contiguous, head_dim is a power of two.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, seq_q, seq_k,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    offs_m, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    queries = offs_m[:, None] * HEAD_DIM + offs_d[None, :]
    q = tl.load(q_ptr + queries, mask=offs_m[:, None] < seq_q, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    # --8<-- [start:loop]
    for start_n in range(0, last, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        keys = offs_n[:, None] * HEAD_DIM + offs_d[None, :]
        k = tl.load(k_ptr + keys, mask=offs_n[:, None] < seq_k, other=0.0)
        v = tl.load(v_ptr + keys, mask=offs_n[:, None] < seq_k, other=0.0)
        s = tl.dot(q, k.T, input_precision="ieee") * scale
        seen = offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
        # Wrong: a finite number. What no key outweighs has a weight after all.
        # --8<-- [line:mask]
        s = s + tl.where(seen & (offs_n[None, :] < seq_k), 0.0, -1e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p, alpha = tl.exp(s - m_new[:, None]), tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m_i = m_new
    # --8<-- [end:loop]
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    tl.store(o_ptr + queries, o, mask=offs_m[:, None] < seq_q)
    tl.store(lse_ptr + offs_m, m_i + tl.log(l_i), mask=offs_m < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(q, k, v, *, block_m=64, block_n=32):
    """A wrong causal attention of one head: (o, lse), wrong in rows that see no key."""
    (seq_q, head_dim), lse = q.shape, q.new_empty(len(q), dtype=torch.float32)
    o, grid = torch.empty_like(q), (triton.cdiv(seq_q, block_m),)
    sizes = seq_q, len(k), head_dim, block_m, block_n
    with torch.cuda.device_of(q):
        attention_kernel[grid](q, k, v, o, lse, head_dim**-0.5, *sizes)
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(n, 64, device=device) for n in (100, 60, 60))
    o, lse = attention(q, k, v)  # queries 0 to 39 see no key
    print(f"{device}: largest output of blind rows {o[:40].abs().max():.2f}, not 0")
    print(f"their largest lse: {lse[:40].max().item():.0f} instead of -inf")
# --8<-- [end:demo]
