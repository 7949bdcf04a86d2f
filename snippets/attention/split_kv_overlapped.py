"""Decoding with less waiting: launches overlap, and the first keys are asked for."""

import functools

import torch
import triton
import triton.language as tl


# --8<-- [start:prefetch]
@triton.jit
def prefetch(ptrs, mask):
    """A hint: bring the lines of memory at these addresses to the L2 cache."""
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.b32 p, $2, 0;"
        " @p prefetch.global.L2 [$1]; mov.b32 $0, 0; }",
        constraints="=r,l,r",  # a result (it is not used), addresses, the mask
        args=[ptrs, mask.to(tl.int32)],
        dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


# --8<-- [end:prefetch]


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, seq_lens_ptr, o_ptr, lse_ptr, scale,
    stride_qb, stride_qh, stride_qm, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    batches, kv_heads, seq_q, seq_k, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr, CAUSAL: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    # Which batch and head of keys: int64, because their offsets may pass 2^31.
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    split, splits = tl.program_id(2), tl.num_programs(2)
    q_ptr += batch * stride_qb + kv_head * GROUP * stride_qh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh

    # --8<-- [start:setup]
    # The queries of all heads that share these keys are the rows of one tile.
    start_m = tl.program_id(0) * BLOCK_M
    rows = start_m + tl.arange(0, BLOCK_M)
    offs_m, offs_h = (rows // GROUP).to(tl.int64), (rows % GROUP).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    # --8<-- [start:overlap]
    if OVERLAP:
        # The next launch may take its places now. It waits for all of this one.
        # --8<-- [line:release]
        tl.extra.cuda.gdc_launch_dependents()
        # The keys of the first tile; an address for each line of 128 bytes.
        LINE: tl.constexpr = 1024 // k_ptr.dtype.element_ty.primitive_bitwidth
        offs_n = (split * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        lines = tl.arange(0, (BLOCK_D + LINE - 1) // LINE).to(tl.int64) * LINE
        # --8<-- [line:prefetch]
        prefetch(
            k_ptr + offs_n[:, None] * stride_kn + lines[None, :] * stride_kd,
            mask=(offs_n[:, None] < seq_k) & (lines[None, :] < HEAD_DIM),
        )
        # Nothing of the launches before may be read above, and nothing written.
        # --8<-- [line:wait]
        tl.extra.cuda.gdc_wait()
    # --8<-- [end:overlap]
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_h[:, None] * stride_qh + offs_m[:, None] * stride_qm
    q = tl.load(q_ptrs + offs_d[None, :] * stride_qd, mask=mask_m, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    # Few rows: registers are free, and it is waiting that costs.
    # --8<-- [line:few]
    FEW: tl.constexpr = BLOCK_M == 16
    l_i = tl.zeros((BLOCK_M, BLOCK_N if FEW else 1), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [end:setup]

    # --8<-- [start:loop]
    keys = seq_k
    if seq_lens_ptr is not None:
        keys = tl.minimum(tl.maximum(tl.load(seq_lens_ptr + batch), 0), seq_k)
    last = keys
    if CAUSAL:
        last = tl.minimum(last, (start_m + BLOCK_M - 1) // GROUP + 1 + keys - seq_q)
    # The tiles are dealt out in turn: the programs of a head read side by side.
    for start_n in range(split * BLOCK_N, last, splits * BLOCK_N):
        offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)
        mask_n = (offs_n[:, None] < last) & (offs_d[None, :] < HEAD_DIM)
        k_ptrs = k_ptr + offs_n[:, None] * stride_kn + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]

        # Always q. But so written, k and v are asked for before q has arrived.
        # --8<-- [line:late_q]
        q_now = tl.where(start_n < last, q, 0.0) if FEW else q
        s = tl.dot(q_now, k.T, input_precision=INPUT_PRECISION) * scale
        seen = offs_n[None, :] < last
        if CAUSAL:
            seen &= offs_n[None, :] <= offs_m[:, None] + keys - seq_q
        s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - shift[:, None])
        alpha = tl.exp(m_i - shift)
        # --8<-- [line:sum]
        l_new = p if FEW else tl.sum(p, axis=1, keep_dims=True)
        l_i = l_i * alpha[:, None] + l_new
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    # --8<-- [end:loop]

    # --8<-- [line:total]
    l_i = tl.sum(l_i, axis=1)
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    head = (split * batches + batch) * kv_heads * GROUP + kv_head * GROUP + offs_h
    row = head * seq_q + offs_m
    tl.store(o_ptr + row[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_m)
    tl.store(lse_ptr + row, m_i + tl.log(l_i), mask=offs_m < seq_q)


# --8<-- [end:kernel]


# --8<-- [start:merge]
@triton.jit
def merge_kernel(
    o_parts_ptr, lse_parts_ptr, o_ptr, lse_ptr, rows, splits, HEAD_DIM: tl.constexpr,
    BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    offs_s = tl.arange(0, BLOCK_S).to(tl.int64)
    offs_d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask_s, mask_d = offs_s < splits, offs_d < HEAD_DIM
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row_s = offs_s * rows + row
    lse_s = tl.load(lse_parts_ptr + row_s, mask_s, other=float("-inf"))
    o_ptrs = o_parts_ptr + row_s[:, None] * HEAD_DIM + offs_d[None, :]
    o_s = tl.load(o_ptrs, mask=mask_s[:, None] & mask_d[None, :], other=0.0)

    # A part's output counts as much as the sum of its exponentials.
    m_i = tl.max(lse_s, axis=0)
    shift = tl.where(m_i == float("-inf"), 0.0, m_i)
    w = tl.exp(lse_s - shift)
    l_i = tl.sum(w, axis=0)
    o = tl.sum(w[:, None] * o_s, axis=0) / tl.where(l_i == 0.0, 1.0, l_i)
    tl.store(o_ptr + row * HEAD_DIM + offs_d, o, mask=mask_d)
    tl.store(lse_ptr + row, m_i + tl.log(l_i), mask=tl.program_id(1) == 0)


# --8<-- [end:merge]


# --8<-- [start:splits]
@functools.cache
def choose_splits(programs: int, tiles: int, slots: int) -> int:
    """The fewest parts that end about as soon as any, `slots` programs at a time.

    Each of `programs` walks over so many `tiles` if the keys are not split.
    """
    numbers = range(1, max(1, min(tiles, 256)) + 1)
    # To start, and to write a part, takes about as long as a tile.
    ends = [
        triton.cdiv(programs * n, slots) * (triton.cdiv(tiles, n) + 1) for n in numbers
    ]
    soonest = min(ends)
    return next(n for n in numbers if ends[n - 1] <= 1.05 * soonest)


# --8<-- [end:splits]


# --8<-- [start:checks]
def check(q, k, v, seq_lens) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"{name} has {x.ndim} dimensions; it must have 4")
        if torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this forward pass would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")
    (batch, heads, _, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16/32 or bfloat16")
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if batch * heads > 65535:
        raise ValueError(f"q has {batch} * {heads} heads; it must have at most 65535")
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(f"k has {kv_heads} heads; it must divide q's {heads}")
    right = f"{q.dtype} {[batch, kv_heads, seq_k, head_dim]} on {q.device}"
    for name, x in (("k", k), ("v", v)):
        if (got := f"{x.dtype} {[*x.shape]} on {x.device}") != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
    if seq_lens is not None:
        got = f"{seq_lens.dtype} {[*seq_lens.shape]} on {seq_lens.device}"
        right = f"torch.int32 {[batch]} on {q.device}"
        if got != right or not seq_lens.is_contiguous():
            raise ValueError(f"seq_lens is {got}; it must be {right}, contiguous")


# --8<-- [end:checks]


# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
    seq_lens: torch.Tensor | None = None, causal: bool = False,
    scale: float | None = None, input_precision: str = "ieee",
    splits: int | None = None, block_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on an NVIDIA
            GPU, any strides; head_dim from 1 to 256, batch * heads up to 65535.
        k: [batch, kv_heads, seq_k, head_dim], dtype and device of q, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: as k.
        seq_lens: [batch], int32, contiguous, device of q: how many keys each sequence
            has, from 0 to seq_k; what lies behind them is not read. None: seq_k.
        causal: query i sees key j only if j <= i + keys - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        splits: programs that share the keys of a head, up to 256; None: enough to
            fill the GPU.
        block_n: keys of a step, a power of two from 16 to 256; None: as many as leave
            room for seven such tiles in shared memory.

    Returns:
        o: as q, contiguous, and lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Dao et al., "Flash-Decoding for long-context inference", 2023.
    """
    # --8<-- [end:signature]
    check(q, k, v, seq_lens)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0:
        return o, lse
    group = heads // kv_heads
    block_d = max(16, triton.next_power_of_2(head_dim))
    most = 16 if q.dtype == torch.float32 else 64  # rows of a tile
    block_m = max(16, min(most, triton.next_power_of_2(group * seq_q)))
    blocks = triton.cdiv(group * seq_q, block_m)
    if splits is not None and not 1 <= splits <= 256:
        raise ValueError(f"splits is {splits}; it must be from 1 to 256")
    if block_n is None:
        # Three stages of k and v, and q; rounded down to a power of two.
        gpu = torch.cuda.get_device_properties(q.device)
        fitting = gpu.shared_memory_per_block_optin // (7 * block_d * q.element_size())
        block_n = min(256, 1 << max(4, fitting.bit_length() - 1))
    if splits is None:  # a multiprocessor holds one program
        slots = torch.cuda.get_device_properties(q.device).multi_processor_count
        tiles = triton.cdiv(seq_k, block_n)
        splits = choose_splits(blocks * batch * kv_heads, tiles, slots)
    # From Hopper on, a launch may take its places before the one before it ends.
    overlap = q.is_cuda and torch.cuda.get_device_capability(q.device) >= (9, 0)
    # One part is the whole: it goes to its place at once.
    o_parts, lse_parts = o, lse
    if splits > 1:
        o_parts = torch.empty((splits, *o.shape), dtype=torch.float32, device=q.device)
        lse_parts = lse.new_empty((splits, *lse.shape))
    with torch.cuda.device_of(q):
        attention_kernel[(blocks, batch * kv_heads, splits)](
            q, k, v, seq_lens, o_parts, lse_parts,
            head_dim**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), batch, kv_heads, seq_q, seq_k,
            GROUP=group, HEAD_DIM=head_dim,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d,
            INPUT_PRECISION=input_precision,
            CAUSAL=causal and seq_q > 1,  # a single query sees all keys
            OVERLAP=overlap, launch_pdl=overlap, num_warps=4, num_stages=3,
        )  # fmt: skip
        if splits > 1:
            merge_kernel[(lse.numel(), triton.cdiv(head_dim, 32))](
                o_parts, lse_parts, o, lse, lse.numel(), splits, HEAD_DIM=head_dim,
                BLOCK_S=triton.next_power_of_2(splits), BLOCK_D=32,
                OVERLAP=overlap, launch_pdl=overlap,
                num_warps=1 if splits <= 128 else 2,  # more parts, more registers
            )  # fmt: skip
    return o, lse


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    q = torch.randn(2, 8, 1, 80, device=device).half()
    k, v = (torch.randn(2, 2, 1000, 80, device=device).half() for _ in range(2))
    seq_lens = torch.tensor([1000, 345], dtype=torch.int32, device=device)
    o, lse = attention(q, k, v, seq_lens=seq_lens, splits=3, block_n=64)
    # --8<-- [end:call]
    k, v = (x.double().repeat_interleave(4, dim=1) for x in (k, v))
    seen = torch.arange(1000, device=device) < seq_lens[:, None, None, None]
    scores = (q.double() @ k.mT * 80**-0.5).where(seen, float("-inf"))
    error = (o - torch.softmax(scores, dim=-1) @ v).abs().max().item()
    lse_error = (lse - torch.logsumexp(scores, dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, of the logsumexp {lse_error:.1e}")
# --8<-- [end:demo]
