"""Wrong on purpose: the keys beyond the last have a weight, that of a score of 0.

The loads are masked and nothing is read out of bounds, but the scores are not.
flash2_single_head.py masks them. Tensors are contiguous, head_dim is a power of two.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, seq_q, seq_k,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    queries = offs_m[:, None] * HEAD_DIM + offs_d[None, :]
    q = tl.load(q_ptr + queries, mask=offs_m[:, None] < seq_q, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    # --8<-- [start:loop]
    for start_n in range(0, seq_k, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        keys = offs_n[:, None] * HEAD_DIM + offs_d[None, :]
        k = tl.load(k_ptr + keys, mask=offs_n[:, None] < seq_k, other=0.0)
        v = tl.load(v_ptr + keys, mask=offs_n[:, None] < seq_k, other=0.0)
        # Wrong: keys that do not exist were loaded as 0, and have a score of 0.
        # --8<-- [line:scores]
        s = tl.dot(q, k.T, input_precision="ieee") * scale  # [BLOCK_M, BLOCK_N]
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        pv = tl.dot(p.to(v.dtype), v, input_precision="ieee")
        acc = acc * alpha[:, None] + pv
        m_i = m_new
    # --8<-- [end:loop]
    tl.store(o_ptr + queries, acc / l_i[:, None], mask=offs_m[:, None] < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(q, k, v, *, block_m=64, block_n=32):
    """A wrong attention of one head, [seq, head_dim]."""
    o, (seq_q, head_dim) = torch.empty_like(q), q.shape
    with torch.cuda.device_of(q):
        attention_kernel[(triton.cdiv(seq_q, block_m),)](
            q, k, v, o, head_dim**-0.5, seq_q, len(k), head_dim, block_m, block_n
        )
    return o


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(n, 64, device=device).half() for n in (64, 1000, 1000))
    scores = q.double() @ k.double().T * 64**-0.5
    error = attention(q, k, v) - torch.softmax(scores, dim=-1) @ v.double()
    print(f"{device}: largest error {error.abs().max():.1e}, which looks small")
    print(f"weights of row 0 sum to {attention(q, k, v * 0 + 1)[0, 0].item():.3f}")
    q[:, 0], k[:, 0] = 8, -10  # all scores about 10 lower: the sum must stay 1
    print(f"with lower scores, to {attention(q, k, v * 0 + 1)[0, 0].item():.3f}")
# --8<-- [end:demo]
