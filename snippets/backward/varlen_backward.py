"""The backward pass of packed sequences: no gradient meets another sequence."""

import torch
import triton
import triton.language as tl


# --8<-- [start:locate]
@triton.jit
def locate(own_ptr, other_ptr, own, other, batch, BLOCK: tl.constexpr):
    """Which rows a program writes, which it meets, and where its block begins."""
    # Sequence u owns the blocks from own_ptr[u] // BLOCK + u on: which is ours?
    # --8<-- [line:find]
    u = -1
    for first in range(0, batch + 1, 128):
        offs_b = first + tl.arange(0, 128)
        start = tl.load(own_ptr + offs_b, mask=offs_b <= batch, other=own)
        u += tl.sum((start // BLOCK + offs_b <= tl.program_id(0)).to(tl.int32))
    u = tl.maximum(u, 0)
    # Its rows, inside the tensors. Behind the last sequence is one that meets nothing.
    first = tl.minimum(tl.maximum(tl.load(own_ptr + u), 0), own)
    last = tl.minimum(tl.maximum(tl.load(own_ptr + u + 1, u < batch, own), 0), own)
    # --8<-- [line:met]
    first_met = tl.minimum(tl.maximum(tl.load(other_ptr + u), 0), other)
    end_met = tl.minimum(tl.maximum(tl.load(other_ptr + u + 1, u < batch, 0), 0), other)
    begin = tl.maximum(tl.program_id(0) - first // BLOCK - u, 0) * BLOCK
    # --8<-- [line:none]
    met = tl.where(first + begin < last, end_met - first_met, 0)  # below 0 it is none
    # The rows are of 64 bits: their offsets may pass 2^31.
    return first.to(tl.int64), last - first, first_met.to(tl.int64), met, begin


# --8<-- [end:locate]
# --8<-- [start:dq]
@triton.jit
def tile(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    """Pointers to the rows `offs` of a sequence; and which of their elements exist."""
    ptr += at[0] * strides[0] + at[1] * strides[1]
    ptrs = ptr + offs[:, None] * strides[0] + offs_d[None, :] * strides[2]
    return ptrs, (offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)


@triton.jit
def load(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    ptrs, mask = tile(ptr, strides, at, offs, size, offs_d, HEAD_DIM)
    return tl.load(ptrs, mask=mask, other=0.0)


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    q_strides, k_strides, v_strides, o_strides, do_strides, dq_strides, scale, batch,
    cu_seqlens_q_ptr, cu_seqlens_k_ptr, group, total_q: tl.int32, total_k: tl.int32,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):  # fmt: skip
    ours = locate(cu_seqlens_q_ptr, cu_seqlens_k_ptr, total_q, total_k, batch, BLOCK_M)
    first_q, seq_q, first_k, seq_k, start_m = ours
    at = (first_q, tl.program_id(1).to(tl.int64))
    kv_at = (first_k, at[1] // group)
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    q = load(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    o = load(o_ptr, o_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    do = load(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    rows = at[1] * total_q + first_q + offs_m[:, None]  # [BLOCK_M, 1]
    lse = tl.load(lse_ptr + rows, mask=offs_m[:, None] < seq_q, other=float("inf"))
    # A row that saw nothing has lse = -inf, and weights of 0: exp(s - inf).
    lse = tl.where(lse == float("-inf"), float("inf"), lse)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1, keep_dims=True)
    tl.store(delta_ptr + rows, delta, mask=offs_m[:, None] < seq_q)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    diagonal = seq_k - seq_q if CAUSAL else seq_k
    last = tl.minimum(start_m + BLOCK_M + diagonal, seq_k)
    end = tl.minimum(offs_m[:, None] + 1 + diagonal, seq_k)
    for start_n in range(0, last, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
        k = load(k_ptr, k_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
        v = load(v_ptr, v_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
        s = tl.dot(q, k.T, input_precision=INPUT_PRECISION) * scale
        p = tl.exp(tl.where(offs_n[None, :] < end, s, float("-inf")) - lse)
        ds = p * (tl.dot(do, v.T, input_precision=INPUT_PRECISION) - delta)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dq_ptr, dq_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    tl.store(ptrs, dq * scale, mask=mask)


# --8<-- [end:dq]
# --8<-- [start:dkdv]
@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    q_strides, k_strides, v_strides, do_strides, dk_strides, dv_strides, scale, batch,
    cu_seqlens_q_ptr, cu_seqlens_k_ptr, group, total_q: tl.int32, total_k: tl.int32,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):  # fmt: skip
    ours = locate(cu_seqlens_k_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_N)
    first_k, seq_k, first_q, seq_q, start_n = ours
    kv_at = (first_k, tl.program_id(1).to(tl.int64))
    offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    k = load(k_ptr, k_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    v = load(v_ptr, v_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    diagonal = seq_k - seq_q if CAUSAL else seq_k
    first = tl.maximum(start_n - diagonal, 0) // BLOCK_M * BLOCK_M
    for each in range(group):
        for start_m in range(first, seq_q, BLOCK_M):
            at = (first_q, kv_at[1] * group + each)
            offs_m = (start_m + tl.arange(0, BLOCK_M)).to(tl.int64)
            q = load(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
            do = load(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
            rows = at[1] * total_q + first_q + offs_m[None, :]  # [1, BLOCK_M]
            mask_m = offs_m[None, :] < seq_q
            lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))  # so p = 0
            lse = tl.where(lse == float("-inf"), float("inf"), lse)
            delta = tl.load(delta_ptr + rows, mask=mask_m, other=0.0)
            s_t = tl.dot(k, q.T, input_precision=INPUT_PRECISION) * scale
            seen = offs_n[:, None] <= offs_m[None, :] + diagonal
            p_t = tl.exp(tl.where(seen, s_t, float("-inf")) - lse)
            ds_t = p_t * (tl.dot(v, do.T, input_precision=INPUT_PRECISION) - delta)
            dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)
            dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dk_ptr, dk_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dk * scale, mask=mask)
    ptrs, mask = tile(dv_ptr, dv_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dv, mask=mask)


# --8<-- [end:dkdv]
# --8<-- [start:launch]
def check(tensors: dict[str, torch.Tensor]) -> None:
    """Raise a ValueError that names the tensor that the kernels cannot take."""
    q, k, ends = tensors["q"], tensors["k"], torch.as_tensor(tensors["cu_seqlens_q"])
    fits = q.ndim == 3 and 1 <= q.shape[1] <= 65535 and 1 <= q.shape[2] <= 256
    if not fits or q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        known = "[any, 1 to 65535, 1 to 256] of float16/32 or bfloat16"
        raise ValueError(f"q is {q.dtype} {list(q.shape)}; it must be {known}")
    if k.ndim == 3 and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        raise ValueError(f"k has {k.shape[1]} heads; it must divide q's {q.shape[1]}")
    of_k, rows, n = [*k.shape[:2], q.shape[2]], [*q.shape[1::-1]], [ends.numel() or 1]
    shapes = {"k": of_k, "v": of_k, "lse": rows, "cu_seqlens_q": n, "cu_seqlens_k": n}
    for name, x in tensors.items():
        shape = shapes.get(name, [*q.shape])
        dtype = (torch.int32, torch.float32, q.dtype)[len(shape) - 1]
        found = f"{x.dtype} {list(x.shape)} on {x.device}" if hasattr(x, "dtype") else x
        if found != (wanted := f"{dtype} {shape} on {q.device}"):
            raise ValueError(f"{name} is {found}; it must be {wanted}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient, which is lost: detach it")


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor, *, causal: bool = False, input_precision: str = "ieee",
    scale: float | None = None, block_m: int | None = None, block_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v for each sequence.

    Args:
        q, o, do: [total_q, heads, head_dim], float16, bfloat16 or float32, on a GPU,
            any strides; head_dim from 1 to 256, heads from 1 to 65535.
        k, v: as q, but [total_k, kv_heads, head_dim]; kv_heads divides heads.
        lse: the natural logsumexp, [heads, total_q], float32.
        cu_seqlens_q, cu_seqlens_k: [batch + 1], int32: those of the forward pass.
        causal: query i of a sequence sees its key j only if j <= i + seq_k - seq_q.
        scale: head_dim ** -0.5 if None. input_precision: of float32, "ieee" or "tf32".
        block_m, block_n: powers of two from 16 to 128; None is 64, of wide rows 32.
    Returns dq, dk, dv: as q, k and v, in their layouts; 0 where nothing was seen.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 2, with a kernel of its own for dQ.
    """
    check(dict([*locals().items()][:8]))  # the tensors
    (total_q, heads, head_dim), (total_k, kv_heads, _) = q.shape, k.shape
    cu_seqlens_q, cu_seqlens_k = cu_seqlens_q.contiguous(), cu_seqlens_k.contiguous()
    batch, lse = len(cu_seqlens_q) - 1, lse.contiguous()
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    block = 64 if head_dim * q.element_size() <= 512 else 32
    options = {
        "cu_seqlens_q_ptr": cu_seqlens_q, "BLOCK_M": block_m or block, "CAUSAL": causal,
        "cu_seqlens_k_ptr": cu_seqlens_k, "BLOCK_N": block_n or block, "num_stages": 2,
        "scale": head_dim**-0.5 if scale is None else scale, "group": heads // kv_heads,
        "total_q": total_q, "total_k": total_k, "INPUT_PRECISION": input_precision,
        "HEAD_DIM": head_dim, "BLOCK_D": max(16, triton.next_power_of_2(head_dim)),
        "num_warps": 4 if head_dim * q.element_size() <= 256 else 8, "batch": batch,
    }  # fmt: skip
    with torch.cuda.device_of(q):
        dq_kernel[(total_q // options["BLOCK_M"] + batch + 1, heads)](
            q, k, v, o, do, lse, delta, dq,
            *(x.stride() for x in (q, k, v, o, do, dq)), **options,
        )  # fmt: skip
        dkdv_kernel[(total_k // options["BLOCK_N"] + batch + 1, kv_heads)](
            q, k, v, do, lse, delta, dk, dv,
            *(x.stride() for x in (q, k, v, do, dk, dv)), **options,
        )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cu = torch.tensor([0, 50, 50, 53, 99], dtype=torch.int32, device=device)
    q, k, v, do = torch.randn(4, 4, 99, 9, device=device).half()  # heads first
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    # The same as one sequence, in which a token sees its own sequence only.
    owner = torch.bucketize(torch.arange(99, device=device), cu, right=True)
    seen = (owner[:, None] == owner).tril()
    scores = (exact[0] @ exact[1].mT / 3).where(seen, float("-inf"))
    o, lse = torch.softmax(scores, dim=-1) @ exact[2], torch.logsumexp(scores, dim=-1)
    o.backward(do.double())
    q, k, v, o, do = (x.detach().half().transpose(0, 1) for x in (q, k, v, o, do))
    others = lse.detach().float(), do, cu, cu
    dq, _, _ = attention_backward(q, k, v, o, *others, causal=True)
    error = (dq - exact[0].grad.transpose(0, 1)).abs().max()
    print(f"{device}: largest error of dq {error:.1e}")
# --8<-- [end:demo]
