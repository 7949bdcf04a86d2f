"""Attention with dropout of its weights: the mask is drawn tile by tile."""

import torch
import triton
import triton.language as tl


# --8<-- [start:draw]
@triton.jit
def draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N: tl.constexpr):
    """Which weights stay, of the rows `offs_m` and BLOCK_N keys: [rows, BLOCK_N]."""
    # Philox takes four words of 32 bits: eight keys, the row, the head, and a 0.
    # --8<-- [line:words]
    eight = (start_n // 8 + tl.arange(0, BLOCK_N // 8)).to(tl.uint32)[None, :]
    row, head = offs_m.to(tl.uint32)[:, None], head.to(tl.uint32)
    # --8<-- [line:philox]
    r0, r1, r2, r3 = tl.philox(seed, eight, row, head, head * 0)
    words = tl.interleave(tl.interleave(r0, r2), tl.interleave(r1, r3))
    # --8<-- [line:compare]
    return tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32) >= threshold


# --8<-- [end:draw]
# --8<-- [start:mask]
@triton.jit(do_not_specialize=["threshold"])
def keep_kernel(
    keep_ptr, seed_ptr, threshold, seq_q, seq_k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head, seed = tl.program_id(1).to(tl.int64), tl.load(seed_ptr)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    for start_n in range(0, seq_k, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N)
        rows = (head * seq_q + offs_m)[:, None] * seq_k
        inside = (offs_m[:, None] < seq_q) & (offs_n[None, :] < seq_k)
        tl.store(keep_ptr + rows + offs_n[None, :], keep, mask=inside)


def keep_mask(
    shape: tuple[int, int, int, int], *, p: float, seed: torch.Tensor,
    block_m: int = 32, block_n: int = 64,
) -> torch.Tensor:  # fmt: skip
    """The mask that `attention` draws, of [batch, heads, seq_q, seq_k], bool."""
    keep = torch.empty(shape, dtype=torch.bool, device=seed.device)
    batch, heads, seq_q, seq_k = shape
    with torch.cuda.device_of(keep):
        keep_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            keep, seed, round(p * 65536), seq_q, seq_k,
            BLOCK_M=block_m, BLOCK_N=block_n,
        )  # fmt: skip
    return keep


# --8<-- [end:mask]


# --8<-- [start:kernel]
@triton.jit(do_not_specialize=["threshold"])
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, seed_ptr, q_strides, k_strides, v_strides,
    o_strides, threshold, keep_scale, scale, heads, seq_q: tl.int32, seq_k: tl.int32,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):  # fmt: skip
    # Which batch and head: int64, because their offsets may pass 2^31.
    head, seed = tl.program_id(1).to(tl.int64), tl.load(seed_ptr)
    q_ptr += head // heads * q_strides[0] + head % heads * q_strides[1]
    k_ptr += head // heads * k_strides[0] + head % heads * k_strides[1]
    v_ptr += head // heads * v_strides[0] + head % heads * v_strides[1]
    o_ptr += head // heads * o_strides[0] + head % heads * o_strides[1]

    start_m = tl.program_id(0) * BLOCK_M
    offs_m = (start_m + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_m[:, None] * q_strides[2] + offs_d[None, :] * q_strides[3]
    q = tl.load(q_ptrs, mask=mask_m, other=0.0)  # [BLOCK_M, BLOCK_D]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = tl.minimum(start_m + BLOCK_M + seq_k - seq_q, seq_k) if CAUSAL else seq_k
    # --8<-- [start:loop]
    for start_n in range(0, end, BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(INDEX)
        mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)
        k_ptrs = k_ptr + offs_n[:, None] * k_strides[2] + offs_d[None, :] * k_strides[3]
        v_ptrs = v_ptr + offs_n[:, None] * v_strides[2] + offs_d[None, :] * v_strides[3]
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]

        s = tl.dot(q, k.T, input_precision=INPUT_PRECISION) * scale
        seen = offs_n[None, :] < seq_k
        if CAUSAL:
            seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
        s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - shift[:, None])
        alpha = tl.exp(m_i - shift)
        # --8<-- [line:sum]
        l_i = l_i * alpha + tl.sum(p, axis=1)
        # --8<-- [line:draw]
        keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N)
        # --8<-- [line:drop]
        p = tl.where(keep, p, 0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    # --8<-- [end:loop]

    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    # --8<-- [line:finish]
    o = acc * keep_scale / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    lse = m_i + tl.log(l_i)
    o_ptrs = o_ptr + offs_m[:, None] * o_strides[2] + offs_d[None, :] * o_strides[3]
    tl.store(o_ptrs, o, mask=mask_m)
    tl.store(lse_ptr + head * seq_q + offs_m, lse, mask=offs_m < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:launch]
def check(p: float, seed: torch.Tensor, **tensors: torch.Tensor) -> None:
    """Raise a ValueError that names what the kernel cannot take."""
    q, k = tensors["q"], tensors["k"]
    if q.ndim != 4 or not 1 <= q.shape[3] <= 256 or q.shape[0] * q.shape[1] > 65535:
        wanted = "[batch, heads, seq, head_dim], head_dim 1 to 256, 65535 heads in all"
        raise ValueError(f"q is {list(q.shape)}; it must be {wanted}")
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16/32 or bfloat16")
    of_keys = (*q.shape[:2], *k.shape[2:3], q.shape[3])
    for name, x in tensors.items():
        shape, dtype = q.shape if name == "q" else of_keys, q.dtype
        if (x.shape, x.dtype, x.device) != (shape, dtype, q.device):
            wanted = f"{list(shape)} {dtype} on {q.device}"
            found = f"{list(x.shape)} {x.dtype} on {x.device}"
            raise ValueError(f"{name} is {found}; it must be {wanted}")
        if torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this forward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}; it must be from 0 to 1")
    one = isinstance(seed, torch.Tensor) and (seed.dtype, seed.numel(), seed.device)
    if one != (torch.int64, 1, q.device):
        wanted = f"an int from 0 to 2**63 - 1, or one int64 on {q.device}"
        raise ValueError(f"seed is {seed!r}; it must be {wanted}")


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, p: float,
    seed: int | torch.Tensor, causal: bool = False, scale: float | None = None,
    input_precision: str = "ieee", block_m: int = 64, block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """dropout(softmax(q k^T * scale)) v, and the logsumexp of the scores.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a GPU, any
            strides; head_dim from 1 to 256, batch * heads up to 65535.
        k, v: [batch, heads, seq_k, head_dim], dtype and device of q, any strides.
        p: the probability of dropping a weight, from 0 to 1, rounded to 2^-16.
        seed: an int from 0 to 2^63 - 1, or an int64 tensor of one element on the device
            of q, which is read when the kernel runs. With the batch and head, the row
            and the key it decides which weights stay.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        block_m, block_n: queries and keys of a tile, powers of two from 16 to 128.

    Returns:
        o: as q, in its layout. lse: [batch, heads, seq_q], float32, without dropout.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao et al., "FlashAttention", 2022, algorithm 2, in FlashAttention-2's loop.
    """
    if isinstance(seed, int) and 0 <= seed < 2**63:
        seed = torch.full((), seed, device=q.device)
    check(p, seed, q=q, k=k, v=v)
    (batch, heads, seq_q, head_dim), seq_k = q.shape, k.shape[2]
    o, threshold = torch.empty_like(q), round(p * 65536)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    # Offsets inside a head: 32 bits are faster, and enough unless it is very large.
    spans = (x.shape[2] * x.stride(2) + head_dim * x.stride(3) for x in (q, k, v, o))
    with torch.cuda.device_of(q):
        attention_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            q, k, v, o, lse, seed, *(x.stride() for x in (q, k, v, o)),
            threshold, 65536 / (65536 - threshold) if threshold < 65536 else 0.0,
            head_dim**-0.5 if scale is None else scale, heads, seq_q, seq_k,
            HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            BLOCK_M=block_m, BLOCK_N=block_n, INPUT_PRECISION=input_precision,
            INDEX=tl.int32 if max(spans) < 2**31 else tl.int64, CAUSAL=causal,
            num_warps=4 if block_m * head_dim <= 2**14 else 8, num_stages=2,
            enable_fp_fusion=False,  # s has the rounding that m_new has
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = torch.randn(3, 2, 2, 100, 80, device=device).half()
    # --8<-- [start:call]
    seed = torch.tensor(2026, device=device)
    o, lse = attention(q, k, v, p=0.1, seed=seed, causal=True)
    keep = keep_mask((2, 2, 100, 100), p=0.1, seed=seed)
    # --8<-- [end:call]
    seen = torch.ones(100, 100, dtype=torch.bool, device=device).tril()
    scores = (q.double() @ k.double().mT * 80**-0.5).where(seen, float("-inf"))
    weights = torch.softmax(scores, dim=-1) * keep / (1 - round(0.1 * 65536) / 65536)
    error = (o - weights @ v.double()).abs().max().item()
    print(f"{device}: {keep.double().mean():.1%} stay, largest error {error:.1e}")
# --8<-- [end:demo]
