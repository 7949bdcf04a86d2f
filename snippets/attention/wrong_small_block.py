"""Wrong on purpose: causal bounds that hold only if block_n divides block_m.

flash2_causal.py rounds them to whole tiles. As many queries as keys here, a multiple of
block_m; tensors are contiguous, head_dim is a power of two.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, seq,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    offs_m, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    queries = offs_m[:, None] * HEAD_DIM + offs_d[None, :]
    q = tl.load(q_ptr + queries)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    # --8<-- [start:loop]
    # Wrong: a tile of keys need not begin at start_m. Then the last one off the band
    # reaches beyond it, without a mask, and the band begins with the same keys.
    # --8<-- [line:bounds]
    full, last = start_m, start_m + BLOCK_M
    for ON_BAND in tl.static_range(2):
        for start_n in range(full * ON_BAND, last if ON_BAND else full, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            keys = offs_n[:, None] * HEAD_DIM + offs_d[None, :]
            k = tl.load(k_ptr + keys, mask=offs_n[:, None] < seq, other=0.0)
            v = tl.load(v_ptr + keys, mask=offs_n[:, None] < seq, other=0.0)
            s = tl.dot(q, k.T, input_precision="ieee") * scale
            if ON_BAND:
                s = tl.where(offs_n[None, :] <= offs_m[:, None], s, float("-inf"))
            m_new = tl.maximum(m_i, tl.max(s, axis=1))
            p, alpha = tl.exp(s - m_new[:, None]), tl.exp(m_i - m_new)
            l_i = l_i * alpha + tl.sum(p, axis=1)
            pv = tl.dot(p.to(v.dtype), v, input_precision="ieee")
            acc, m_i = acc * alpha[:, None] + pv, m_new
    # --8<-- [end:loop]
    tl.store(o_ptr + queries, acc / l_i[:, None])


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(q, k, v, *, block_m=64, block_n=64):
    """A wrong causal attention of one head, [seq, head_dim]."""
    (seq, head_dim), o = q.shape, torch.empty_like(q)
    sizes = seq, head_dim, block_m, block_n
    with torch.cuda.device_of(q):
        attention_kernel[(seq // block_m,)](q, k, v, o, head_dim**-0.5, *sizes)
    return o


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = torch.randn(3, 256, 64, device=device)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    expected = sdpa(*(x.double() for x in (q, k, v)), is_causal=True)
    for block_m, block_n in ((64, 32), (64, 64), (32, 64)):
        o = attention(q, k, v, block_m=block_m, block_n=block_n)
        error = (o - expected).norm() / expected.norm()
        print(f"{device}: tiles of {block_m} by {block_n}: relative error {error:.1e}")
# --8<-- [end:demo]
