"""FlashAttention-1 for one head: a launch per block of keys, its state kept in HBM."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, m_ptr, l_ptr, scale,
    stride_qm, stride_qd, stride_kn, stride_kd,
    stride_vn, stride_vd, stride_om, stride_od, start_n, seq_q, seq_k,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:setup]
    # --8<-- [line:inner]
    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    # --8<-- [line:load_q]
    q = tl.load(q_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D]
    # --8<-- [line:load_state]
    o = tl.load(o_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D], float32
    m_i = tl.load(m_ptr + offs_m, mask=offs_m < seq_q, other=float("-inf"))
    l_i = tl.load(l_ptr + offs_m, mask=offs_m < seq_q, other=0.0)

    offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
    mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)
    k_ptrs = k_ptr + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd
    v_ptrs = v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
    # --8<-- [line:load_kv]
    k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
    v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
    # --8<-- [end:setup]

    # --8<-- [start:tile]
    # --8<-- [line:scores]
    s = tl.dot(q, k.T, input_precision="ieee") * scale
    s = tl.where(offs_n[None, :] < seq_k, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

    # --8<-- [line:tile_max]
    m_ij = tl.max(s, axis=1)
    # All -inf: subtract 0, because (-inf) - (-inf) is NaN.
    # --8<-- [line:weights]
    p = tl.exp(s - tl.where(m_ij == float("-inf"), 0.0, m_ij)[:, None])
    # --8<-- [line:tile_sum]
    l_ij = tl.sum(p, axis=1)
    # --8<-- [line:max]
    m_new = tl.maximum(m_i, m_ij)
    shift = tl.where(m_new == float("-inf"), 0.0, m_new)
    # --8<-- [line:alpha]
    alpha = tl.exp(m_i - shift)
    # --8<-- [line:beta]
    beta = tl.exp(m_ij - shift)
    l_i = l_i * alpha
    # --8<-- [line:sum]
    l_new = l_i + l_ij * beta
    # --8<-- [line:product]
    pv = tl.dot(p.to(v.dtype), v, input_precision="ieee")
    # --8<-- [line:output]
    o = o * l_i[:, None] + pv * beta[:, None]
    # A row that has seen nothing has l_new = 0 and o = 0: its output is 0.
    # --8<-- [line:divide]
    o = o / tl.where(l_new == 0.0, 1.0, l_new)[:, None]
    # --8<-- [end:tile]

    # --8<-- [start:finish]
    # --8<-- [line:store]
    tl.store(o_ptrs, o, mask=mask_m)
    # --8<-- [line:store_state]
    tl.store(l_ptr + offs_m, l_new, mask=offs_m < seq_q)
    tl.store(m_ptr + offs_m, m_new, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]


# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 2:
            raise ValueError(f"{name} has {x.ndim} dimensions; it must have 2")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(f"{name} is {x.dtype}; it must be float16/32 or bfloat16")
        if (x.dtype, x.device) != (q.dtype, q.device):
            as_q = f"{q.dtype} on {q.device}, as q"
            raise ValueError(f"{name} is {x.dtype} on {x.device}; it must be {as_q}")
        if torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this forward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")
    head_dim = q.shape[1]
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if k.shape[1] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[1]}; it must be q's {head_dim}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")


# --8<-- [end:checks]


# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
    scale: float | None = None, block_m: int = 64, block_n: int = 32,
) -> torch.Tensor:  # fmt: skip
    """softmax(q k^T * scale) v, for one head.

    Args:
        q: [seq_q, head_dim], float16, bfloat16 or float32, on a GPU, any strides;
            head_dim from 1 to 256.
        k, v: [seq_k, head_dim], dtype and device of q, any strides.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128.

    Returns:
        o: as q, in its layout. A row without keys, or whose scores are all -inf, is 0.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Dao et al., "FlashAttention", 2022, algorithm 1.
    """
    check(q, k, v)
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    scale = head_dim**-0.5 if scale is None else scale
    # --8<-- [start:host]
    # The state of all rows, in HBM. float32 also for o: each launch rounds it again.
    # --8<-- [line:initialise]
    o = torch.zeros_like(q, dtype=torch.float32)
    m_i = torch.full((seq_q,), float("-inf"), dtype=torch.float32, device=q.device)
    l_i = torch.zeros((seq_q,), dtype=torch.float32, device=q.device)
    if seq_q == 0:
        return o.to(q.dtype)
    # Offsets of 32 bits are faster, and enough unless the head is very large.
    spans = (x.shape[0] * x.stride(0) + head_dim * x.stride(1) for x in (q, k, v, o))
    index = tl.int32 if max(spans) < 2**31 else tl.int64
    with torch.cuda.device_of(q):
        # --8<-- [line:outer]
        for start_n in range(0, seq_k, block_n):
            attention_kernel[(triton.cdiv(seq_q, block_m),)](
                q, k, v, o, m_i, l_i, scale,
                *q.stride(), *k.stride(), *v.stride(), *o.stride(),
                start_n, seq_q, seq_k,
                HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
                BLOCK_M=block_m, BLOCK_N=block_n, INDEX=index,
                num_warps=4 if block_m * head_dim <= 2**14 else 8,
            )  # fmt: skip
    # --8<-- [line:cast]
    return o.to(q.dtype)
    # --8<-- [end:host]


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(300, 64, device=device).half() for _ in range(3))
    o = attention(q, k, v)
    scores = q.double() @ k.double().T * 64**-0.5
    error = (o - torch.softmax(scores, dim=-1) @ v.double()).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
