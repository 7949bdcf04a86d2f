"""The backward pass of attention with dropout: both kernels draw the mask again."""

import torch
import triton
import triton.language as tl


# --8<-- [start:helpers]
@triton.jit
def pointers(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    """Of the rows `offs` of one head; and which of their elements exist."""
    ptr += at[0] * strides[0] + at[1] * strides[1]
    ptrs = ptr + offs[:, None] * strides[2] + offs_d[None, :] * strides[3]
    return ptrs, (offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)


@triton.jit
def load_tile(ptr, strides, at, offs, size, offs_d, HEAD_DIM: tl.constexpr):
    """These rows, and 0 where there is nothing."""
    ptrs, mask = pointers(ptr, strides, at, offs, size, offs_d, HEAD_DIM)
    return tl.load(ptrs, mask=mask, other=0.0)


@triton.jit
def draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N: tl.constexpr):
    """Which weights stay, of the rows `offs_m` and BLOCK_N keys: [rows, BLOCK_N]."""
    eight = (start_n // 8 + tl.arange(0, BLOCK_N // 8)).to(tl.uint32)[None, :]
    row, head = offs_m.to(tl.uint32)[:, None], head.to(tl.uint32)
    r0, r1, r2, r3 = tl.philox(seed, eight, row, head, head * 0)
    words = tl.interleave(tl.interleave(r0, r2), tl.interleave(r1, r3))
    return tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32) >= threshold


# --8<-- [end:helpers]
# --8<-- [start:weights]
@triton.jit
def weights(a, b, c, d, lse, delta, seen, z, scale, INPUT_PRECISION: tl.constexpr):
    """p z and ds of a tile from (q, k, do, v); transposed from (k, q, v, do)."""
    s = tl.dot(a, b.T, input_precision=INPUT_PRECISION) * scale
    # A row that saw nothing has lse = -inf. Its weights are 0: exp(s - inf).
    p = tl.exp(s - tl.where(lse == float("-inf"), float("inf"), lse))
    p = tl.where(seen, p, 0.0)
    dp = tl.dot(c, d.T, input_precision=INPUT_PRECISION) * z
    # --8<-- [line:ds]
    return p * z, p * (dp - delta)


# --8<-- [end:weights]
# --8<-- [start:dq]
@triton.jit(do_not_specialize=["threshold"])
def dq_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, seed_ptr,
    q_strides, k_strides, v_strides, o_strides, do_strides, dq_strides, threshold,
    keep_scale, scale, heads, seq_q: tl.int32, seq_k: tl.int32, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # Which batch and head: int64, because their offsets may pass 2^31.
    head, start_m = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK_M
    at, seed = (head // heads, head % heads), tl.load(seed_ptr)
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    q = load_tile(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    o = load_tile(o_ptr, o_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    do = load_tile(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    rows, mask_m = head * seq_q + offs_m[:, None], offs_m[:, None] < seq_q
    lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))
    # --8<-- [line:delta]
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1, keep_dims=True)
    tl.store(delta_ptr + rows, delta, mask=mask_m)

    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # The last key that each row sees.
    last_n = (offs_m + seq_k - seq_q if CAUSAL else offs_m * 0 + seq_k - 1)[:, None]
    end = tl.minimum(start_m + BLOCK_M + seq_k - seq_q, seq_k) if CAUSAL else seq_k
    for start_n in range(0, end, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        k = load_tile(k_ptr, k_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
        v = load_tile(v_ptr, v_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
        # --8<-- [line:draw_dq]
        keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N)
        seen, z = offs_n[None, :] <= last_n, tl.where(keep, keep_scale, 0.0)
        _, ds = weights(q, k, do, v, lse, delta, seen, z, scale, INPUT_PRECISION)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)
    ptrs, mask = pointers(dq_ptr, dq_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
    tl.store(ptrs, dq * scale, mask=mask)


# --8<-- [end:dq]
# --8<-- [start:dkdv]
@triton.jit(do_not_specialize=["threshold"])
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, seed_ptr,
    q_strides, k_strides, v_strides, do_strides, dk_strides, dv_strides, threshold,
    keep_scale, scale, heads, seq_q: tl.int32, seq_k: tl.int32, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr, INPUT_PRECISION: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    head, start_n = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK_N
    at, seed = (head // heads, head % heads), tl.load(seed_ptr)
    offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    k = load_tile(k_ptr, k_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    v = load_tile(v_ptr, v_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    first = tl.maximum(start_n + seq_q - seq_k, 0) // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start_m in range(first, seq_q, BLOCK_M):
        offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
        q = load_tile(q_ptr, q_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
        do = load_tile(do_ptr, do_strides, at, offs_m, seq_q, offs_d, HEAD_DIM)
        rows, mask_m = head * seq_q + offs_m[None, :], offs_m[None, :] < seq_q
        lse = tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))
        delta = tl.load(delta_ptr + rows, mask=mask_m, other=0.0)
        last_n = (offs_m + seq_k - seq_q if CAUSAL else offs_m * 0 + seq_k - 1)[None, :]
        # --8<-- [line:draw_dkdv]
        keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N).T
        seen, z = mask_m & (offs_n[:, None] <= last_n), tl.where(keep, keep_scale, 0.0)
        p_t, ds_t = weights(k, q, v, do, lse, delta, seen, z, scale, INPUT_PRECISION)
        dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)
        dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)
    ptrs, mask = pointers(dk_ptr, dk_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dk * scale, mask=mask)
    ptrs, mask = pointers(dv_ptr, dv_strides, at, offs_n, seq_k, offs_d, HEAD_DIM)
    tl.store(ptrs, dv, mask=mask)


# --8<-- [end:dkdv]
# --8<-- [start:launch]
def check(p: float, seed: torch.Tensor, **tensors: torch.Tensor) -> None:
    """Raise a ValueError that names what the kernels cannot take."""
    q, k = tensors["q"], tensors["k"]
    if q.ndim != 4 or not 1 <= q.shape[3] <= 256 or q.shape[0] * q.shape[1] > 65535:
        wanted = "[batch, heads, seq, head_dim], head_dim 1 to 256, 65535 heads in all"
        raise ValueError(f"q is {list(q.shape)}; it must be {wanted}")
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16/32 or bfloat16")
    shapes = dict.fromkeys("kv", (*q.shape[:2], *k.shape[2:3], q.shape[3]))
    shapes["lse"] = q.shape[:3]
    for name, x in tensors.items():
        dtype = torch.float32 if name == "lse" else q.dtype
        shape = shapes.get(name, q.shape)
        if (x.shape, x.dtype, x.device) != (shape, dtype, q.device):
            wanted = f"{list(shape)} {dtype} on {q.device}"
            found = f"{list(x.shape)} {x.dtype} on {x.device}"
            raise ValueError(f"{name} is {found}; it must be {wanted}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient, which is lost: detach it")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}; it must be from 0 to 1")
    one = isinstance(seed, torch.Tensor) and (seed.dtype, seed.numel(), seed.device)
    if one != (torch.int64, 1, q.device):
        wanted = f"an int from 0 to 2**63 - 1, or one int64 on {q.device}"
        raise ValueError(f"seed is {seed!r}; it must be {wanted}")


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, p: float, seed: int | torch.Tensor,
    causal: bool = False, scale: float | None = None, input_precision: str = "ieee",
    block_m: int = 64, block_n: int = 64,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of dropout(softmax(q k^T * scale)) v.

    Args:
        q, k, v, p, seed, causal, scale, input_precision: those of the forward pass.
        o, do: what it returned, and its gradient: as q, any strides.
        lse: what it returned: [batch, heads, seq_q], float32.
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128.
    Returns dq, dk, dv: as q, k and v, in their layouts; a row that saw no key adds 0.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao et al., "FlashAttention", 2022, algorithm 4, in two kernels.
    """
    if isinstance(seed, int) and 0 <= seed < 2**63:
        seed = torch.full((), seed, device=q.device)
    check(p, seed, q=q, k=k, v=v, o=o, lse=lse, do=do)
    (batch, heads, seq_q, head_dim), seq_k = q.shape, k.shape[2]
    lse, threshold = lse.contiguous(), round(p * 65536)
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    all_of = q, k, v, o, do, dq, dk, dv  # offsets inside a head: mostly of 32 bits
    spans = [x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in all_of]
    options = {
        "threshold": threshold, "heads": heads, "seq_q": seq_q, "seq_k": seq_k,
        "keep_scale": 65536 / (65536 - threshold) if threshold < 65536 else 0.0,
        "scale": head_dim**-0.5 if scale is None else scale, "CAUSAL": causal,
        "HEAD_DIM": head_dim, "BLOCK_D": max(16, triton.next_power_of_2(head_dim)),
        "BLOCK_M": block_m, "BLOCK_N": block_n, "INPUT_PRECISION": input_precision,
        "INDEX": tl.int32 if max(spans) < 2**31 else tl.int64,
        "num_warps": 4 if head_dim * q.element_size() <= 256 else 8, "num_stages": 2,
    }  # fmt: skip
    with torch.cuda.device_of(q):
        dq_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            q, k, v, o, do, lse, delta, dq, seed,
            *(x.stride() for x in (q, k, v, o, do, dq)), **options,
        )  # fmt: skip
        dkdv_kernel[(triton.cdiv(seq_k, block_n), batch * heads)](
            q, k, v, do, lse, delta, dk, dv, seed,
            *(x.stride() for x in (q, k, v, do, dk, dv)), **options,
        )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v, do = torch.randn(4, 2, 3, 64, 64, device=device).half()
    dropped = {"p": 0.1, "seed": torch.tensor(2026, device=device)}
    # Without scores each weight is 1 / 64, so if do is the identity, dv is z.T / 64.
    zero, one = torch.zeros_like(q), torch.eye(64, device=device).half().expand_as(q)
    lse = torch.full((2, 3, 64), 64.0, device=device).log()
    z = attention_backward(zero, zero, zero, zero, lse, one, **dropped)[2].mT * 64
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    scores = exact[0] @ exact[1].mT / 8
    o, lse = torch.softmax(scores, dim=-1) * z @ exact[2], scores.logsumexp(dim=-1)
    o.backward(do.double())
    o, lse = o.detach().half(), lse.detach().float()
    dq, _, _ = attention_backward(q, k, v, o, lse, do, **dropped)
    print(f"{device}: largest error of dq {(dq - exact[0].grad).abs().max():.1e}")
# --8<-- [end:demo]
