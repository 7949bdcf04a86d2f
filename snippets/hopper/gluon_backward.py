"""Attention's backward pass for Hopper, in Gluon: one warp loads, eight compute."""

import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from snippets.backward.one_kernel import aligned, check
from snippets.hopper.gluon_flash import DTYPES, rows_of_warps
from snippets.hopper.gluon_specialised import barriers, load

LOG2_E = tl.constexpr(math.log2(math.e))


# --8<-- [start:kernel]
# --8<-- [start:rows]
@triton.jit
def rows_kernel(
    o_ptr, do_ptr, lse_ptr, dlse_ptr, rows_ptr, o_strides, do_strides, heads,
    seq_q: tl.int32, row_stride, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Of each row of scores: lse in base 2, and delta. They lie in two lines."""
    blocks = tl.cdiv(seq_q, 64)
    pair = (tl.program_id(0) // blocks).to(tl.int64)
    offs_m = tl.program_id(0) % blocks * 64 + tl.arange(0, 64)
    offs_d = tl.arange(0, BLOCK_D)
    seen = offs_m < seq_q
    mask = seen[:, None] & (offs_d < HEAD_DIM)[None, :]
    ob, oh, om = o_strides
    db, dh, dm = do_strides
    rows = offs_m.to(tl.int64)[:, None]
    o_ptr += pair // heads * ob + pair % heads * oh
    do_ptr += pair // heads * db + pair % heads * dh
    o = tl.load(o_ptr + rows * om + offs_d, mask=mask, other=0.0)
    do = tl.load(do_ptr + rows * dm + offs_d, mask=mask, other=0.0)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1)
    if dlse_ptr is not None:
        delta -= tl.load(dlse_ptr + pair * seq_q + offs_m, mask=seen, other=0.0)
    lse = tl.load(lse_ptr + pair * seq_q + offs_m, mask=seen, other=0.0)
    lse2 = tl.where(lse == float("-inf"), float("inf"), lse * LOG2_E)
    tl.store(rows_ptr + 2 * pair * row_stride + offs_m, lse2, mask=seen)
    tl.store(rows_ptr + (2 * pair + 1) * row_stride + offs_m, delta, mask=seen)


# --8<-- [end:rows]
# --8<-- [start:produce]
@gluon.jit
def produce(descs, tiles, bars, at, GROUP: gl.constexpr):
    """The producer, one warp: K and V once, then Q, dO and the rows of each tile."""
    q_desc, do_desc, rows_desc, k_desc, v_desc = descs
    k, v, ring, rows = tiles
    kv_full, full, empty, rows_full, rows_empty, _ds_full, _done = bars
    batch, kv_head, start_n, first, steps = at
    for x in gl.static_range(2):
        mbarrier.expect(kv_full.index(x), 2 * k_desc.block_type.nbytes)
        for w in gl.static_range(2):
            where = [batch, kv_head, start_n + 64 * w, 0]
            if x == 0:
                tma.async_copy_global_to_shared(k_desc, where, kv_full.index(x), k.index(w))
            else:
                tma.async_copy_global_to_shared(v_desc, where, kv_full.index(x), v.index(w))
    for i in range(GROUP * steps):
        head, start_m = kv_head * GROUP + i // steps, first + i % steps * 64
        load(q_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i)
        load(rows_desc, [batch, head, 0, start_m], rows, rows_full, rows_empty, i)
        load(do_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i + 1)


# --8<-- [end:produce]
@gluon.jit
def consume(given, tiles, bars, at, W: gl.constexpr, GROUP: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr, HEAD_DIM: gl.constexpr):
    dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k, heads = given
    k_all, v_all, ring, rows_ring, ds_all = tiles
    kv_full, full, empty, rows_full, rows_empty, ds_full, done = bars
    batch, kv_head, start_n, first, steps = at
    PLACES: gl.constexpr = ring.shape[0]
    BLOCK_D: gl.constexpr = ring.shape[4]
    HALF: gl.constexpr = BLOCK_D // 2
    dtype: gl.constexpr = ring.dtype
    SCORES: gl.constexpr = rows_of_warps(64)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    PART: gl.constexpr = rows_of_warps(HALF)
    LEFT: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=2)
    no_scores = gl.zeros([64, 64], gl.float32, SCORES)
    no_dq = gl.zeros([64, HALF], gl.float32, PART)
    dk = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    dv = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    k = k_all.index(W).reshape([64, BLOCK_D])
    v = v_all.index(W).reshape([64, BLOCK_D])
    own = k.slice(W * HALF, HALF, dim=1)
    other = k_all.index(1 - W).reshape([64, BLOCK_D]).slice(W * HALF, HALF, dim=1)
    start_n += 64 * W
    mbarrier.wait(kv_full.index(0), 0)
    mbarrier.wait(kv_full.index(1), 0)
    for i in range(GROUP * steps):
        head, start_m = kv_head * GROUP + i // steps, first + i % steps * 64
        n = 2 * i
        mbarrier.wait(full.index(n % PLACES), n // PLACES & 1)
        q = ring.index(n % PLACES).reshape([64, BLOCK_D])
        s = warpgroup_mma(k, q.permute((1, 0)), no_scores, use_acc=False, is_async=True)
        n += 1
        mbarrier.wait(full.index(n % PLACES), n // PLACES & 1)
        do = ring.index(n % PLACES).reshape([64, BLOCK_D])
        dp = warpgroup_mma(v, do.permute((1, 0)), no_scores, use_acc=False, is_async=True)
        ROWS: gl.constexpr = rows_ring.shape[0]
        mbarrier.wait(rows_full.index(i % ROWS), i // ROWS & 1)
        rows = rows_ring.index(i % ROWS).reshape([2, 64])
        lse = rows.slice(0, 1, dim=0).load(SCORES)
        delta = rows.slice(1, 1, dim=0).load(SCORES)
        mbarrier.arrive(rows_empty.index(i % ROWS))
        s = warpgroup_mma_wait(1, deps=[s])
        p = gl.exp2(s * (scale * LOG2_E) - lse)
        if MASKED:
            if start_n + 63 > gl.minimum(start_m + seq_k - seq_q, seq_k - 1):
                offs_m = start_m + gl.arange(0, 64, gl.SliceLayout(0, SCORES))
                offs_n = start_n + gl.arange(0, 64, gl.SliceLayout(1, SCORES))
                seen = (offs_n < seq_k)[:, None]
                if CAUSAL:
                    seen &= offs_n[:, None] <= (offs_m + seq_k - seq_q)[None, :]
                p = gl.where(seen, p, 0.0)
        dp = warpgroup_mma_wait(0, deps=[dp])
        ds = (p * (dp - delta)).to(dtype)
        ds_all.index(i % 2 * 2 + W).store(ds)
        fence_async_shared()
        mbarrier.arrive(ds_full.index(i % 2 * 2 + W))
        p = gl.convert_layout(p.to(dtype), LEFT)
        ds = gl.convert_layout(ds, LEFT)
        dv = warpgroup_mma(p, do, dv, is_async=True)
        dq = warpgroup_mma(ds_all.index(i % 2 * 2 + W).permute((1, 0)), own, no_dq, use_acc=False, is_async=True)
        mbarrier.wait(ds_full.index(i % 2 * 2 + 1 - W), i // 2 & 1)
        dq = warpgroup_mma(ds_all.index(i % 2 * 2 + 1 - W).permute((1, 0)), other, dq, is_async=True)
        dk = warpgroup_mma(ds, q, dk, is_async=True)
        dq, dv = warpgroup_mma_wait(1, deps=[dq, dv])
        mbarrier.arrive(empty.index(n % PLACES))
        offs_m = gl.arange(0, 64, gl.SliceLayout(1, PART))
        offs_d = W * HALF + gl.arange(0, HALF, gl.SliceLayout(0, PART))
        tile = dq_sum + ((batch * heads + head).to(gl.int64) * seq_q + start_m) * HEAD_DIM
        ptrs = tile + offs_m[:, None] * HEAD_DIM + offs_d[None, :]
        mask = (start_m + offs_m < seq_q)[:, None]
        if HEAD_DIM < BLOCK_D:
            mask &= (offs_d < HEAD_DIM)[None, :]
        gl.atomic_add(ptrs, dq, mask=mask, sem="relaxed")
        dk = warpgroup_mma_wait(0, deps=[dk])
        mbarrier.arrive(empty.index((n - 1) % PLACES))
    mbarrier.arrive(done)
    v.store(dv.to(dtype))
    mbarrier.wait(done, 0)
    k.store((dk * scale).to(dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(dv_desc, [batch, kv_head, start_n, 0], v_all.index(W))
    tma.async_copy_shared_to_global(dk_desc, [batch, kv_head, start_n, 0], k_all.index(W))
    tma.store_wait(0)


@gluon.jit
def backward_kernel(
    q_desc, do_desc, rows_desc, k_desc, v_desc, dk_desc, dv_desc, dq_sum, scale,
    SECTION, GROUP: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
    HEAD_DIM: gl.constexpr, PLACES: gl.constexpr,
):  # fmt: skip
    heads, seq_q, seq_k = q_desc.shape[1], q_desc.shape[2], k_desc.shape[2]
    blocks = gl.cdiv(seq_k, 128)
    section = gl.program_id(0) // (SECTION * blocks)
    within = gl.program_id(0) % (SECTION * blocks)
    size = gl.minimum(SECTION, k_desc.shape[0] * k_desc.shape[1] - section * SECTION)
    pair = section * SECTION + within % size
    batch, kv_head = pair // k_desc.shape[1], pair % k_desc.shape[1]
    start_n = within // size * 128
    first = 0
    if CAUSAL:
        first = gl.maximum(start_n + seq_q - seq_k, 0)
    steps = gl.cdiv(seq_q - first, 64)

    dtype: gl.constexpr = q_desc.dtype
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    k = gl.allocate_shared_memory(dtype, [2, 1, 1, 64, BLOCK_D], k_desc.layout)
    v = gl.allocate_shared_memory(dtype, [2, 1, 1, 64, BLOCK_D], k_desc.layout)
    ring = gl.allocate_shared_memory(dtype, [PLACES, 1, 1, 64, BLOCK_D], q_desc.layout)
    rows = gl.allocate_shared_memory(gl.float32, [2, 1, 1, 2, 64], rows_desc.layout)
    DS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], dtype)
    ds = gl.allocate_shared_memory(dtype, [4, 64, 64], DS)
    bars = (
        barriers(2, 1), barriers(PLACES, 1), barriers(PLACES, 2), barriers(2, 1),
        barriers(2, 2), barriers(4, 1), barriers(1, 2).index(0),
    )  # fmt: skip
    at = (batch, kv_head, start_n, first, steps)
    given = (dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k, heads)
    descs = (q_desc, do_desc, rows_desc, k_desc, v_desc)
    tiles = (k, v, ring, rows, ds)
    gl.warp_specialize(
        [
            (consume, (given, tiles, bars, at, 0, GROUP, CAUSAL, MASKED, HEAD_DIM)),
            (consume, (given, tiles, bars, at, 1, GROUP, CAUSAL, MASKED, HEAD_DIM)),
            (produce, (descs, (k, v, ring, rows), bars, at, GROUP)),
        ],
        worker_num_warps=[4, 1],
        worker_num_regs=[240, 24],
    )


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    causal: bool = False, scale: float | None = None, places: int = 4, section: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    check(q, k, v, o, lse, do, dlse)
    if q.shape[3] > 128:
        raise ValueError(f"q has head_dim {q.shape[3]}; it must be 8, 16, ..., or 128")
    q, k, v, o, do = (aligned(x) for x in (q, k, v, o, do))
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    if not dq.numel() or not dk.numel():  # a descriptor cannot be of an empty tensor
        return dq.zero_(), dk.zero_(), dv.zero_()
    lse, dlse = lse.contiguous(), None if dlse is None else dlse.contiguous()
    scale = head_dim**-0.5 if scale is None else scale
    block_d = 64 if head_dim <= 64 else 128
    dq_sum = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    line = triton.cdiv(seq_q, 4) * 4
    rows = torch.empty((batch, heads, 2, line), dtype=torch.float32, device=q.device)
    block = [1, 1, 64, block_d]
    layout = gl.NVMMASharedLayout.get_default_for(block, DTYPES[q.dtype])
    q_desc, do_desc, k_desc, v_desc, dk_desc, dv_desc = (
        TensorDescriptor.from_tensor(x, block, layout) for x in (q, do, k, v, dk, dv)
    )
    rows_layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=4)
    rows_desc = TensorDescriptor.from_tensor(rows[..., :seq_q], [1, 1, 2, 64], rows_layout)
    with torch.cuda.device_of(q):
        rows_kernel[(triton.cdiv(seq_q, 64) * batch * heads,)](
            o, do, lse, dlse, rows, o.stride()[:3], do.stride()[:3], heads, seq_q, line,
            head_dim, block_d,
        )  # fmt: skip
        backward_kernel[(triton.cdiv(seq_k, 128) * batch * kv_heads,)](
            q_desc, do_desc, rows_desc, k_desc, v_desc, dk_desc, dv_desc, dq_sum, scale,
            section or 1, GROUP=heads // kv_heads, CAUSAL=causal,
            MASKED=causal or seq_k % 128 > 0, HEAD_DIM=head_dim, PLACES=places,
            num_warps=4,
        )  # fmt: skip
        torch.mul(dq_sum, scale, out=dq)
    return dq, dk, dv


# --8<-- [end:launch]
