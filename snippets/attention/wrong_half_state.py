"""Wrong on purpose: between the launches the output is kept in the dtype of q.

Each launch rounds o, and the next one starts from what was rounded, so the error grows
with the number of keys. Lengths are multiples of the blocks, tensors contiguous.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, m_ptr, l_ptr, scale, start_n,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    queries = offs_m[:, None] * HEAD_DIM + offs_d[None, :]
    keys = offs_n[:, None] * HEAD_DIM + offs_d[None, :]
    q, k, v = tl.load(q_ptr + queries), tl.load(k_ptr + keys), tl.load(v_ptr + keys)
    o, m_i = tl.load(o_ptr + queries), tl.load(m_ptr + offs_m)
    l_i = tl.load(l_ptr + offs_m)

    s = tl.dot(q, k.T, input_precision="ieee") * scale
    m_new = tl.maximum(m_i, tl.max(s, axis=1))
    p = tl.exp(s - m_new[:, None])
    l_i = l_i * tl.exp(m_i - m_new)
    l_new = l_i + tl.sum(p, axis=1)
    o = o * l_i[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    tl.store(o_ptr + queries, o / l_new[:, None])
    tl.store(l_ptr + offs_m, l_new)
    tl.store(m_ptr + offs_m, m_new)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(q, k, v, *, block_m=16, block_n=32):
    """A wrong attention of one head, [seq, head_dim]: right only for few keys."""
    (seq_q, head_dim), scale = q.shape, q.shape[1] ** -0.5
    # Wrong: float16 or bfloat16. Each launch rounds it, and the next one starts there.
    # --8<-- [line:initialise]
    o = torch.zeros_like(q)
    m_i = torch.full((seq_q,), float("-inf"), device=q.device)
    l_i = torch.zeros((seq_q,), device=q.device)
    with torch.cuda.device_of(q):
        for start_n in range(0, len(k), block_n):
            attention_kernel[(seq_q // block_m,)](
                q, k, v, o, m_i, l_i, scale, start_n, head_dim, block_m, block_n
            )
    return o


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for seq_k in (32, 256, 2048):
        q = torch.randn(16, 64, device=device).half()
        k = torch.randn(seq_k, 64, device=device).half()
        v = (1 + torch.rand(seq_k, 64, device=device)).half()
        scores = q.double() @ k.double().T * 64**-0.5
        error = attention(q, k, v) - torch.softmax(scores, dim=-1) @ v.double()
        print(f"{device}: {seq_k:4} keys, largest error {error.abs().max().item():.1e}")
# --8<-- [end:demo]
