"""Attention's backward pass, tuned: base 2, descriptors, tiles for each kernel."""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = tl.constexpr(math.log2(math.e))
# Queries, keys, num_warps and num_stages of each kernel, by the columns of a tile.
TILES = {
    64: {"dq": (64, 64, 4, 3), "dkdv": (64, 64, 4, 2)},
    128: {"dq": (128, 64, 8, 3), "dkdv": (64, 64, 4, 2)},
    256: {"dq": (128, 32, 8, 3), "dkdv": (64, 64, 8, 2)},
}


# --8<-- [start:kernel]
# --8<-- [start:weights]
@triton.jit
def weights(
    a, b, c, d, lse, delta, offs_m, offs_n, scale, seq_q, seq_k,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """p and ds of a tile from (q, k, do, v); p.T and ds.T from (k, q, v, do)."""
    # A row that saw nothing has lse = -inf. Its weights are 0: exp2(s - inf).
    lse2 = tl.where(lse == float("-inf"), float("inf"), lse * LOG2_E)
    # --8<-- [line:p]
    s = tl.dot(a, b.T)
    p = tl.exp2(s * (scale * LOG2_E) - lse2)
    # --8<-- [line:mask]
    if MASKED:
        seen = offs_n < seq_k
        if CAUSAL:
            seen &= offs_n <= offs_m + seq_k - seq_q
        p = tl.where(seen, p, 0.0)
    dp = tl.dot(c, d.T)
    return p, p * (dp - delta)


# --8<-- [end:weights]
# --8<-- [start:dq]
@triton.jit
def dq_kernel(
    q_desc, do_desc, o_desc, dq_desc, k_desc, v_desc, lse_ptr, dlse_ptr, delta_ptr,
    scale, heads, seq_q: tl.int32, seq_k: tl.int32, GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(seq_q, BLOCK_M)
    batch = tl.program_id(0) // blocks // heads
    head = tl.program_id(0) // blocks % heads
    # The last block of a causal head works longest: it goes first.
    start_m = (blocks - 1 - tl.program_id(0) % blocks) * BLOCK_M
    offs_m = start_m + tl.arange(0, BLOCK_M)[:, None]
    q = q_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
    do = do_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
    o = o_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
    rows = (batch * heads + head).to(tl.int64) * seq_q + offs_m
    lse = tl.load(lse_ptr + rows, mask=offs_m < seq_q, other=float("inf"))
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1, keep_dims=True)
    if dlse_ptr is not None:
        delta -= tl.load(dlse_ptr + rows, mask=offs_m < seq_q, other=0.0)
    tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q)

    last = tl.minimum(start_m + BLOCK_M + seq_k - seq_q, seq_k) if CAUSAL else seq_k
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start_n in range(0, last, BLOCK_N):
        k = k_desc.load([batch, head // GROUP, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
        v = v_desc.load([batch, head // GROUP, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
        _, ds = weights(
            q, k, do, v, lse, delta, offs_m, start_n + tl.arange(0, BLOCK_N)[None, :],
            scale, seq_q, seq_k, CAUSAL, MASKED,
        )  # fmt: skip
        dq = tl.dot(ds.to(k.dtype), k, dq)
    dq = (dq * scale).to(q.dtype).reshape(1, 1, BLOCK_M, BLOCK_D)
    dq_desc.store([batch, head, start_m, 0], dq)


# --8<-- [end:dq]
# --8<-- [start:dkdv]
@triton.jit
def dkdv_kernel(
    q_desc, do_desc, k_desc, v_desc, dk_desc, dv_desc, lse_ptr, delta_ptr,
    scale, heads, seq_q: tl.int32, seq_k: tl.int32, GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(seq_k, BLOCK_N)
    batch = tl.program_id(0) // blocks // (heads // GROUP)
    kv_head = tl.program_id(0) // blocks % (heads // GROUP)
    start_n = tl.program_id(0) % blocks * BLOCK_N
    offs_n = start_n + tl.arange(0, BLOCK_N)[:, None]
    k = k_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
    v = v_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
    first = tl.maximum(start_n + seq_q - seq_k, 0) if CAUSAL else 0
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for head in range(kv_head * GROUP, kv_head * GROUP + GROUP):
        for start_m in range(first, seq_q, BLOCK_M):
            q = q_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
            do = do_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
            offs_m = start_m + tl.arange(0, BLOCK_M)[None, :]
            rows = (batch * heads + head).to(tl.int64) * seq_q + offs_m
            lse = tl.load(lse_ptr + rows, mask=offs_m < seq_q, other=float("inf"))
            delta = tl.load(delta_ptr + rows, mask=offs_m < seq_q, other=0.0)
            p_t, ds_t = weights(
                k, q, v, do, lse, delta, offs_m, offs_n,
                scale, seq_q, seq_k, CAUSAL, MASKED,
            )  # fmt: skip
            dv = tl.dot(p_t.to(do.dtype), do, dv)
            dk = tl.dot(ds_t.to(q.dtype), q, dk)
    dk = (dk * scale).to(k.dtype).reshape(1, 1, BLOCK_N, BLOCK_D)
    dv = dv.to(v.dtype).reshape(1, 1, BLOCK_N, BLOCK_D)
    dk_desc.store([batch, kv_head, start_n, 0], dk)
    dv_desc.store([batch, kv_head, start_n, 0], dv)


# --8<-- [end:dkdv]
# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q, k, v, o, lse, do, dlse) -> None:
    """Raise a ValueError that names the tensor that the kernels cannot take."""
    if q.ndim != 4 or q.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"q is {q.dtype}, {q.ndim}-D; it must be (b)float16, 4-D")
    batch, heads, _, head_dim = q.shape
    if head_dim not in range(8, 257, 8):
        raise ValueError(f"q has head_dim {head_dim}; it must be 8, 16, ..., or 256")
    kv_heads = k.shape[1] if k.ndim == 4 and heads % max(1, k.shape[1]) == 0 else 0
    of_keys = batch, kv_heads or heads, *k.shape[2:3], head_dim
    tensors = {"q": q, "k": k, "v": v, "o": o, "do": do, "lse": lse}
    for name, x in (*tensors.items(), ("dlse", lse if dlse is None else dlse)):
        shape = of_keys if name in "kv" else q.shape[: 3 if "lse" in name else 4]
        dtype = torch.float32 if "lse" in name else q.dtype
        got = f"{x.dtype} on {x.device} of {list(x.shape)}"
        right = f"{dtype} on {q.device} of {list(shape)}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")


# --8<-- [end:checks]
# --8<-- [start:launch]
def aligned(x: torch.Tensor) -> torch.Tensor:
    """x, or a copy where the TMA unit cannot take its strides."""
    outer = [stride * x.element_size() for stride in x.stride()[:3]]
    fits = x.stride(3) == 1 and all(n and n % 16 == 0 for n in (*outer, x.data_ptr()))
    return x if fits else x.clone(memory_format=torch.contiguous_format)


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    causal: bool = False, scale: float | None = None,
    tiles: dict[str, tuple[int, int, int, int]] | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v: the same bits in every run.

    Args:
        q: [batch, heads, seq_q, head_dim], float16 or bfloat16, on a GPU, any strides;
            head_dim a multiple of 8 up to 256. What descriptors cannot take is copied.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        o, do: what the forward pass returned, and its gradient: as q.
        lse, dlse: so of the natural logsumexp: [batch, heads, seq_q], float32.
        causal, scale: as in the forward pass; head_dim ** -0.5 if None.
        tiles: such as one of TILES, which are used if None.

    Returns dq, dk, dv: as q, k and v, in their layouts unless these were copied.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 2, with a kernel of its own for dQ.
    """
    check(q, k, v, o, lse, do, dlse)
    q, k, v, o, do = (aligned(x) for x in (q, k, v, o, do))
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    if not dq.numel() or not dk.numel():  # a descriptor cannot be of an empty tensor
        return dq.zero_(), dk.zero_(), dv.zero_()
    lse, dlse = lse.contiguous(), None if dlse is None else dlse.contiguous()
    delta = torch.empty_like(lse)
    block_d = max(16, triton.next_power_of_2(head_dim))
    tiles = tiles or TILES[max(64, block_d)]
    options = {
        "scale": head_dim**-0.5 if scale is None else scale, "CAUSAL": causal,
        "heads": heads, "seq_q": seq_q, "seq_k": seq_k, "GROUP": heads // kv_heads,
        "BLOCK_D": block_d,
    }  # fmt: skip

    def tiles_of(rows: int, *tensors: torch.Tensor) -> list[TensorDescriptor]:
        return [TensorDescriptor.from_tensor(x, [1, 1, rows, block_d]) for x in tensors]

    with torch.cuda.device_of(q):
        m, n, warps, stages = tiles["dq"]
        dq_kernel[(triton.cdiv(seq_q, m) * batch * heads,)](
            *tiles_of(m, q, do, o, dq), *tiles_of(n, k, v), lse, dlse, delta, **options,
            MASKED=causal or seq_k % n > 0, BLOCK_M=m, BLOCK_N=n, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        m, n, warps, stages = tiles["dkdv"]
        dkdv_kernel[(triton.cdiv(seq_k, n) * batch * kv_heads,)](
            *tiles_of(m, q, do), *tiles_of(n, k, v, dk, dv), lse, delta, **options,
            MASKED=causal, BLOCK_M=m, BLOCK_N=n, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v, do = (torch.randn(2, 3, 200, 80, device=device).half() for _ in range(4))
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    o = torch.nn.functional.scaled_dot_product_attention(*exact)
    o.backward(do.double())
    lse = torch.logsumexp(q.double() @ k.double().mT * 80**-0.5, dim=-1).float()
    found = attention_backward(q, k, v, o.detach().half(), lse, do)
    errors = [(dx - x.grad).abs().max() for dx, x in zip(found, exact, strict=True)]
    print(f"{device}: largest errors", *(f"{error:.1e}" for error in errors))
# --8<-- [end:demo]
