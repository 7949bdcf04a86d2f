"""Attention's backward pass in a sliding window: tiles skipped on both sides."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def tile(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    """Pointers to the rows `offs` of one head; and which of their elements exist."""
    ptr += at[0] * strides[0] + at[1] * strides[1]
    ptrs = ptr + offs[:, None] * strides[2] + offs_d[None, :] * strides[3]
    return ptrs, (offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)


# --8<-- [start:weights]
@triton.jit
def weights(a, b, c, d, lse, delta, band, scale, INPUT_PRECISION: tl.constexpr):
    """p and ds of a tile from (q, k, do, v), p.T and ds.T from (k, q, v, do)."""
    s = tl.dot(a, b.T, input_precision=INPUT_PRECISION) * scale
    key, end, window, on_band = band
    if on_band:
        seen = (key < end) & (key >= end - window)
        s = tl.where(seen, s, float("-inf"))
    # A row that saw nothing has lse = -inf, and weights of 0: exp(s - inf).
    p = tl.exp(s - tl.where(lse == float("-inf"), float("inf"), lse))
    dp = tl.dot(c, d.T, input_precision=INPUT_PRECISION)
    return p, p * (dp - delta)


# --8<-- [end:weights]
# --8<-- [start:dq]
@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, dlse_ptr, delta_ptr, dq_ptr,
    q_strides, k_strides, v_strides, o_strides, do_strides, dq_strides,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, diagonal: tl.int32,
    window, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    at = (tl.program_id(1).to(tl.int64) // heads, tl.program_id(1).to(tl.int64) % heads)
    kv_at = (at[0], at[1] // group)  # of int64: their offsets may pass 2^31
    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
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
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1, keep_dims=True)
    if dlse_ptr is not None:
        delta -= tl.load(dlse_ptr + rows, mask=mask_m, other=0.0)
    tl.store(delta_ptr + rows, delta, mask=mask_m)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    full = tl.minimum(start_m + 1 + diagonal, seq_k)
    last = tl.minimum(start_m + BLOCK_M + diagonal, seq_k)
    # --8<-- [line:begin]
    begin = tl.maximum(full - window, 0) // BLOCK_N * BLOCK_N
    end = tl.minimum(offs_m[:, None] + 1 + diagonal, seq_k)
    for start_n in range(begin, last, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        ptrs_n, here = tile(k_ptr, k_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
        k = tl.load(ptrs_n, mask=here, other=0.0)
        ptrs_n, here = tile(v_ptr, v_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
        v = tl.load(ptrs_n, mask=here, other=0.0)
        cut = (start_n + BLOCK_N > full) | (start_n < last - window)
        band = offs_n[None, :], end, window, cut
        _, ds = weights(q, k, do, v, lse, delta, band, scale, INPUT_PRECISION)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dq_ptr, dq_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    tl.store(ptrs, dq * scale, mask=mask)


# --8<-- [end:dq]
# --8<-- [start:dkdv]
@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    q_strides, k_strides, v_strides, do_strides, dk_strides, dv_strides,
    scale, heads, group, seq_q: tl.int32, seq_k: tl.int32, diagonal: tl.int32,
    window, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    first_head = tl.program_id(1).to(tl.int64) * group  # of those with these keys
    kv_at = (first_head // heads, first_head % heads // group)
    start_n = tl.program_id(0) * BLOCK_N
    offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    ptrs, mask = tile(k_ptr, k_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    k = tl.load(ptrs, mask=mask, other=0.0)
    ptrs, mask = tile(v_ptr, v_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    v = tl.load(ptrs, mask=mask, other=0.0)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    first = tl.maximum(start_n - diagonal, 0) // BLOCK_M * BLOCK_M
    whole = tl.minimum(start_n + BLOCK_N, seq_k) - 1 - diagonal
    until = start_n - diagonal + window
    for each in range(group):
        # --8<-- [line:last]
        for start_m in range(first, tl.minimum(whole + window, seq_q), BLOCK_M):
            at = (kv_at[0], (first_head + each) % heads)
            offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
            ptrs_m, here = tile(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
            q = tl.load(ptrs_m, mask=here, other=0.0)
            ptrs_m, here = tile(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
            do = tl.load(ptrs_m, mask=here, other=0.0)
            rows = (first_head + each) * seq_q + offs_m[None, :]  # [1, BLOCK_M]
            mask_m = offs_m[None, :] < seq_q
            lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))  # so p = 0
            delta = tl.load(delta_ptr + rows, mask=mask_m, other=0.0)
            cut = (start_m < whole) | (tl.minimum(start_m + BLOCK_M, seq_q) > until)
            band = offs_n[:, None], offs_m[None, :] + 1 + diagonal, window, cut
            p_t, ds_t = weights(k, q, v, do, lse, delta, band, scale, INPUT_PRECISION)
            dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)
            dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)
    ptrs, mask = tile(dk_ptr, dk_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dk * scale, mask=mask)
    ptrs, mask = tile(dv_ptr, dv_strides, kv_at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dv, mask=mask)


# --8<-- [end:dkdv]
# --8<-- [end:kernel]
# --8<-- [start:launch]
def check(**tensors: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernels cannot take."""
    q, k = tensors["q"], tensors["k"]
    fits = q.ndim == 4 and q.shape[:2].numel() <= 65535 and 1 <= q.shape[3] <= 256
    if not fits or q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        known = "[B, H, N, d] of float16/32 or bfloat16, B * H <= 65535, 0 < d <= 256"
        raise ValueError(f"q is {q.dtype} {list(q.shape)}; it must be {known}")
    if q.shape[1] and k.ndim == 4 and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        raise ValueError(f"k has {k.shape[1]} heads; it must divide q's {q.shape[1]}")
    shapes = dict.fromkeys("kv", torch.Size((q.shape[0], *k.shape[1:3], q.shape[3])))
    for name, x in tensors.items():
        wanted = (q.dtype, shapes.get(name, q.shape), q.device)
        if name in ("lse", "dlse"):
            wanted = (torch.float32, q.shape[:3], q.device)
        if (found := (x.dtype, x.shape, x.device)) != wanted:
            found, wanted = ("{} {} on {}".format(*each) for each in (found, wanted))
            raise ValueError(f"{name} is {found}; it must be {wanted}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient, which is lost: detach it")


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    causal: bool = False, window: int | None = None, input_precision: str = "ieee",
    scale: float | None = None, block_m: int | None = None, block_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v: the same bits in every run.

    Args:
        q, o, do: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a
            GPU, any strides; head_dim from 1 to 256, batch * heads up to 65535.
        k, v: as q, but [batch, kv_heads, seq_k, head_dim]; kv_heads divides heads.
        lse, dlse: of the natural logsumexp, so too: [batch, heads, seq_q], float32.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        window: None, or how many keys up to its own a query sees; needs causal=True.
        scale: head_dim ** -0.5 if None. input_precision: of float32, "ieee" or "tf32".
        block_m, block_n: powers of two from 16 to 128; None is 64, of wide rows 32.
    Returns dq, dk, dv: as q, k and v, in their layouts.
    Raises ValueError: an argument is not one of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 2, with a kernel of its own for dQ.
    """
    check(q=q, k=k, v=v, o=o, lse=lse, do=do, dlse=lse if dlse is None else dlse)
    if window is not None and (window < 1 or not causal):
        raise ValueError(f"window is {window}; it must be None, or causal and above 0")
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    lse, dlse = lse.contiguous(), None if dlse is None else dlse.contiguous()
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    block = 64 if head_dim * q.element_size() <= 512 else 32
    all_of = q, k, v, o, do, dq, dk, dv  # offsets inside a head: mostly of 32 bits
    spans = [x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in all_of]
    options = {
        "scale": head_dim**-0.5 if scale is None else scale, "seq_q": seq_q,
        "diagonal": seq_k - seq_q if causal else seq_k,  # seq_k: all below it
        "window": seq_q + seq_k if window is None else min(window, seq_k),
        "heads": heads, "INDEX": tl.int32 if max(spans) < 2**31 else tl.int64,
        "group": heads // max(kv_heads, 1), "INPUT_PRECISION": input_precision,
        "seq_k": seq_k, "BLOCK_M": block_m or block, "BLOCK_N": block_n or block,
        "HEAD_DIM": head_dim, "BLOCK_D": max(16, triton.next_power_of_2(head_dim)),
        "num_warps": 4 if head_dim * q.element_size() <= 256 else 8, "num_stages": 2,
    }  # fmt: skip
    with torch.cuda.device_of(q):
        if dq.numel():
            dq_kernel[(triton.cdiv(seq_q, options["BLOCK_M"]), batch * heads)](
                q, k, v, o, do, lse, dlse, delta, dq,
                *(x.stride() for x in (q, k, v, o, do, dq)), **options,
            )  # fmt: skip
        if dk.numel():
            dkdv_kernel[(triton.cdiv(seq_k, options["BLOCK_N"]), batch * kv_heads)](
                q, k, v, do, lse, delta, dk, dv,
                *(x.stride() for x in (q, k, v, do, dk, dv)), **options,
            )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v, do = torch.randn(4, 2, 4, 99, 9, device=device).half()
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    seen = torch.ones(99, 99, device=device).tril().triu(-19).bool()
    scores = (exact[0] @ exact[1].mT / 3).where(seen, float("-inf"))
    o, lse = torch.softmax(scores, dim=-1) @ exact[2], torch.logsumexp(scores, dim=-1)
    o.backward(do.double())
    saved = o.detach().half(), lse.detach().float()
    found = attention_backward(q, k, v, *saved, do, causal=True, window=20)
    errors = [(dx - x.grad).abs().max() for dx, x in zip(found, exact, strict=True)]
    print(f"{device}: largest errors", *(f"{error:.1e}" for error in errors))
# --8<-- [end:demo]
