"""Attention's backward pass in two kernels: one for dQ, one for dK and dV."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
# --8<-- [start:tile]
@triton.jit
def tile(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    """Pointers to the rows `offs` of one head; and which of their elements exist."""
    ptr += at[0] * strides[0] + at[1] * strides[1]
    ptrs = ptr + offs[:, None] * strides[2] + offs_d[None, :] * strides[3]
    return ptrs, (offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)


# --8<-- [end:tile]
# --8<-- [start:weights]
@triton.jit
def weights(a, b, c, d, lse, delta, scale, INPUT_PRECISION: tl.constexpr):
    """p and ds of a tile from (q, k, do, v), p.T and ds.T from (k, q, v, do)."""
    # --8<-- [line:s]
    s = tl.dot(a, b.T, input_precision=INPUT_PRECISION) * scale
    # A row that saw nothing has lse = -inf, and weights of 0: exp(s - inf).
    # --8<-- [line:p]
    p = tl.exp(s - tl.where(lse == float("-inf"), float("inf"), lse))
    # --8<-- [line:dp]
    dp = tl.dot(c, d.T, input_precision=INPUT_PRECISION)
    # --8<-- [line:ds]
    ds = p * (dp - delta)
    return p, ds


# --8<-- [end:weights]
# --8<-- [start:dq]
@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, dlse_ptr, delta_ptr, dq_ptr,
    q_strides, k_strides, v_strides, o_strides, do_strides, dq_strides,
    scale, heads, seq_q: tl.int32, seq_k: tl.int32,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # Which batch and head: int64, because their offsets may pass 2^31.
    at = (tl.program_id(1).to(tl.int64) // heads, tl.program_id(1).to(tl.int64) % heads)
    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    ptrs, mask = tile(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    q = tl.load(ptrs, mask=mask, other=0.0)
    ptrs, mask = tile(o_ptr, o_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    o = tl.load(ptrs, mask=mask, other=0.0)
    ptrs, mask = tile(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    do = tl.load(ptrs, mask=mask, other=0.0)
    rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[:, None]  # [BLOCK_M, 1]
    mask_m = offs_m[:, None] < seq_q
    lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))
    # --8<-- [line:delta]
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1, keep_dims=True)
    if dlse_ptr is not None:
        delta -= tl.load(dlse_ptr + rows, mask=mask_m, other=0.0)
    # --8<-- [line:keep]
    tl.store(delta_ptr + rows, delta, mask=mask_m)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [line:keys]
    for start_n in range(0, seq_k, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        ptrs_n, here = tile(k_ptr, k_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
        k = tl.load(ptrs_n, mask=here, other=0.0)
        ptrs_n, here = tile(v_ptr, v_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
        v = tl.load(ptrs_n, mask=here, other=0.0)
        _, ds = weights(q, k, do, v, lse, delta, scale, INPUT_PRECISION)
        ds = tl.where(offs_n[None, :] < seq_k, ds, 0.0)  # [BLOCK_M, BLOCK_N]
        # --8<-- [line:dq]
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dq_ptr, dq_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    tl.store(ptrs, dq * scale, mask=mask)


# --8<-- [end:dq]
# --8<-- [start:dkdv]
@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    q_strides, k_strides, v_strides, do_strides, dk_strides, dv_strides,
    scale, heads, seq_q: tl.int32, seq_k: tl.int32,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    at = (tl.program_id(1).to(tl.int64) // heads, tl.program_id(1).to(tl.int64) % heads)
    offs_n = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    ptrs, mask = tile(k_ptr, k_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    k = tl.load(ptrs, mask=mask, other=0.0)
    ptrs, mask = tile(v_ptr, v_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    v = tl.load(ptrs, mask=mask, other=0.0)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    # --8<-- [line:queries]
    for start_m in range(0, seq_q, BLOCK_M):
        offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
        ptrs_m, here = tile(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
        q = tl.load(ptrs_m, mask=here, other=0.0)
        ptrs_m, here = tile(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
        do = tl.load(ptrs_m, mask=here, other=0.0)
        rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[None, :]  # [1, BLOCK_M]
        mask_m = offs_m[None, :] < seq_q
        # Rows that do not exist have weights of 0, too: exp(s - inf).
        lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))
        delta = tl.load(delta_ptr + rows, mask=mask_m, other=0.0)
        p_t, ds_t = weights(k, q, v, do, lse, delta, scale, INPUT_PRECISION)
        # --8<-- [line:dv]
        dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)
        # --8<-- [line:dk]
        dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dk_ptr, dk_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dk * scale, mask=mask)
    ptrs, mask = tile(dv_ptr, dv_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dv, mask=mask)


# --8<-- [end:dkdv]
# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q, k, v, o, lse, do, dlse) -> None:
    """Raise a ValueError that names the tensor that the kernels cannot take."""
    if q.ndim != 4:
        raise ValueError(f"q has {q.ndim} dimensions; it must have 4")
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16/32 or bfloat16")
    (batch, heads, _, head_dim), of_rows = q.shape, q.shape[:3]
    if not 1 <= head_dim <= 256 or batch * heads > 65535:
        limits = "it must have head_dim 1 to 256, batch * heads up to 65535"
        raise ValueError(f"q is {list(q.shape)}; {limits}")
    of_keys = (batch, heads, *k.shape[2:3], head_dim)
    for name, x, shape, dtype in (
        ("q", q, q.shape, q.dtype), ("k", k, of_keys, q.dtype),
        ("v", v, of_keys, q.dtype), ("o", o, q.shape, q.dtype),
        ("lse", lse, of_rows, torch.float32), ("do", do, q.shape, q.dtype),
        ("dlse", lse if dlse is None else dlse, of_rows, torch.float32),
    ):  # fmt: skip
        if x.shape != shape:
            raise ValueError(f"{name} is {list(x.shape)}; it must be {list(shape)}")
        if (x.dtype, x.device) != (dtype, q.device):
            wanted = f"{dtype} on {q.device}"
            raise ValueError(f"{name} is {x.dtype} on {x.device}; it must be {wanted}")
        if torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this backward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")


# --8<-- [end:checks]
# --8<-- [start:launch]
def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    scale: float | None = None, input_precision: str = "ieee",
    block_m: int | None = None, block_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v: the same bits in every run.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a GPU, any
            strides; head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, heads, seq_k, head_dim], dtype and device of q, any strides.
        o, do: what the forward pass returned, and its gradient: as q, any strides.
        lse, dlse: so of the natural logsumexp: [batch, heads, seq_q], float32.
        scale: that of the forward pass; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128;
            None is 64, or 32 where a row has more than 512 bytes.

    Returns dq, dk, dv: as q, k and v, in their layouts.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 2, with a kernel of its own for dQ.
    """
    check(q, k, v, o, lse, do, dlse)
    (batch, heads, seq_q, head_dim), seq_k = q.shape, k.shape[2]
    lse, dlse = lse.contiguous(), None if dlse is None else dlse.contiguous()
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    block = 64 if head_dim * q.element_size() <= 512 else 32
    block_m, block_n = block_m or block, block_n or block
    # Offsets inside a head: 32 bits are faster, and enough unless it is very large.
    all_of = q, k, v, o, do, dq, dk, dv
    spans = [x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in all_of]
    options = {
        "heads": heads, "seq_q": seq_q, "seq_k": seq_k, "HEAD_DIM": head_dim,
        "scale": head_dim**-0.5 if scale is None else scale, "num_stages": 2,
        "BLOCK_M": block_m, "BLOCK_N": block_n, "INPUT_PRECISION": input_precision,
        "BLOCK_D": max(16, triton.next_power_of_2(head_dim)),
        "INDEX": tl.int32 if max(spans) < 2**31 else tl.int64,
        "num_warps": 4 if head_dim * q.element_size() <= 256 else 8,
    }  # fmt: skip
    with torch.cuda.device_of(q):
        if dq.numel():
            dq_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
                q, k, v, o, do, lse, dlse, delta, dq,
                *(x.stride() for x in (q, k, v, o, do, dq)), **options,
            )  # fmt: skip
        if dk.numel():
            dkdv_kernel[(triton.cdiv(seq_k, block_n), batch * heads)](
                q, k, v, do, lse, delta, dk, dv,
                *(x.stride() for x in (q, k, v, do, dk, dv)), **options,
            )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v, do = (torch.randn(2, 3, 200, 80, device=device).half() for _ in range(4))
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    scores = exact[0] @ exact[1].mT * 80**-0.5
    o, lse = torch.softmax(scores, dim=-1) @ exact[2], torch.logsumexp(scores, dim=-1)
    o.backward(do.double())
    found = attention_backward(q, k, v, o.detach().half(), lse.detach().float(), do)
    errors = [(dx - x.grad).abs().max() for dx, x in zip(found, exact, strict=True)]
    print(f"{device}: largest errors", *(f"{error:.1e}" for error in errors))
# --8<-- [end:demo]
