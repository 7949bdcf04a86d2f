"""FlashAttention-1 for one head: a launch per block of keys, its state kept in HBM."""

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
    m_ptr,
    l_ptr,
    scale,
    stride_qm,
    stride_qd,
    stride_kn,
    stride_kd,
    stride_vn,
    stride_vd,
    stride_om,
    stride_od,
    start_n,
    seq_q,
    seq_k,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    # --8<-- [start:setup]
    # --8<-- [line:inner]
    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    # --8<-- [line:load_q]
    q = tl.load(
        q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd,
        mask=mask_m,
        other=0.0,
    )  # [BLOCK_M, BLOCK_D]
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    # --8<-- [line:load_state]
    o = tl.load(o_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D], float32
    m_i = tl.load(m_ptr + offs_m, mask=offs_m < seq_q, other=float("-inf"))
    l_i = tl.load(l_ptr + offs_m, mask=offs_m < seq_q, other=0.0)

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


# --8<-- [start:launch]
MAX_SEQ = 2**31 - 256  # so that a block beyond the end is counted in 32 bits


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float | None = None,
    block_m: int = 64,
    block_n: int = 32,
) -> torch.Tensor:
    """softmax(q k^T * scale) v, for one head.

    Args:
        q: [seq_q, head_dim], float16, bfloat16 or float32, any strides, on a GPU (or
            on the CPU under TRITON_INTERPRET=1, without bfloat16). head_dim: 1 to 256;
            seq_q, and seq_k below: at most 2^31 - 256.
        k: [seq_k, head_dim], dtype and device of q, any strides.
        v: [seq_k, head_dim], dtype and device of q, any strides.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        block_m: rows of q per program, a power of two from 16 to 128.
        block_n: rows of k and v per launch, a power of two from 16 to 128.

    Returns:
        [seq_q, head_dim], dtype of q, contiguous. Products and sums are float32.
        A row without keys, or whose scores are all -inf, is 0.

    Raises:
        ValueError: an argument is not one of the above.
        triton.OutOfResources: the tiles do not fit into shared memory.

    Source: Dao et al., "FlashAttention", 2022, algorithm 1.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 2:
            raise ValueError(
                f"{name} has {x.ndim} dimensions; it must have 2: [seq, head_dim]"
            )
        if len(x) > MAX_SEQ:
            raise ValueError(f"{name} has seq {len(x)}; it must be up to {MAX_SEQ}")
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
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if k.shape[1] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[1]}; it must be q's {head_dim}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")
    scale = head_dim**-0.5 if scale is None else float(scale)
    if not abs(scale) <= torch.finfo(torch.float32).max:
        raise ValueError(f"scale is {scale}; it must be finite in float32")
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block not in (16, 32, 64, 128):
            raise ValueError(f"{name} is {block}; it must be 16, 32, 64 or 128")

    # --8<-- [start:host]
    # The state of all rows, in HBM. float32 also for o: each launch rounds it again.
    # --8<-- [line:initialise]
    o = torch.zeros((seq_q, head_dim), dtype=torch.float32, device=q.device)
    m_i = torch.full((seq_q,), float("-inf"), dtype=torch.float32, device=q.device)
    l_i = torch.zeros((seq_q,), dtype=torch.float32, device=q.device)
    if seq_q == 0:
        return o.to(q.dtype)
    # --8<-- [line:outer]
    for start_n in range(0, seq_k, block_n):
        attention_kernel[(triton.cdiv(seq_q, block_m),)](
            q,
            k,
            v,
            o,
            m_i,
            l_i,
            scale,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            *o.stride(),
            start_n,
            seq_q,
            seq_k,
            HEAD_DIM=head_dim,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            num_warps=4 if block_m * head_dim <= 2**14 else 8,
        )
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
