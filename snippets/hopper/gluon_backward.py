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
                tma.async_copy_global_to_shared(
                    k_desc, where, kv_full.index(x), k.index(w)
                )
            else:
                tma.async_copy_global_to_shared(
                    v_desc, where, kv_full.index(x), v.index(w)
                )
    BLOCK_M: gl.constexpr = ring.shape[3]
    for i in range(GROUP * steps):
        head, start_m = kv_head * GROUP + i // steps, first + i % steps * BLOCK_M
        load(q_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i)
        load(rows_desc, [batch, head, 0, start_m], rows, rows_full, rows_empty, 2 * i)
        load(do_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i + 1)
        load(
            rows_desc, [batch, head, 1, start_m], rows, rows_full, rows_empty, 2 * i + 1
        )


# --8<-- [end:produce]
@gluon.jit
def add(dq_sum, dq, row, W: gl.constexpr, BLOCK_D: gl.constexpr, ADD: gl.constexpr):
    """Add half the columns of a tile of dQ to their sums in global memory."""
    BLOCK_M: gl.constexpr = dq.shape[0]
    HALF: gl.constexpr = dq.shape[1]
    if ADD == "flat":  # the order in which threads hold them: whole lines at once
        x = dq.reshape([BLOCK_M // 16, 2, 8, HALF // 16, 2, 4, 2])
        x = x.permute((3, 1, 0, 2, 5, 4, 6)).reshape([BLOCK_M * HALF])
        LINES: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
        x = gl.convert_layout(x, LINES)  # the same numbers in the same threads
        ptrs = dq_sum + row * BLOCK_D + W * BLOCK_M * HALF
        ptrs += gl.arange(0, BLOCK_M * HALF, LINES)
        gl.atomic_add(ptrs, x, sem="relaxed")
    else:
        if ADD == "four":
            dq = gl.convert_layout(dq, fours(BLOCK_M, HALF))
        offs_m = gl.arange(0, BLOCK_M, gl.SliceLayout(1, dq.type.layout))
        offs_d = W * HALF + gl.arange(0, HALF, gl.SliceLayout(0, dq.type.layout))
        ptrs = dq_sum + row * BLOCK_D
        ptrs += offs_m[:, None] * BLOCK_D + offs_d[None, :]
        gl.atomic_add(ptrs, dq, sem="relaxed")


@gluon.constexpr_function
def fours(rows, cols):
    """As rows_of_warps, but a thread holds four neighbours: two threads swap."""
    regs = [[0, 1], [0, 2]]
    regs += [[0, 1 << b] for b in range(4, 9) if 1 << b < cols]
    regs += [[8, 0]] + ([[64, 0]] if rows == 128 else [])
    lanes = [[0, 8], [0, 4], [1, 0], [2, 0], [4, 0]]
    return gl.DistributedLinearLayout(regs, lanes, [[16, 0], [32, 0]], [], [rows, cols])


@gluon.jit
def weigh(
    s,
    lse2,
    scale,
    start_m,
    start_n,
    seq_q,
    seq_k,
    CAUSAL: gl.constexpr,
    MASKED: gl.constexpr,
):
    """The weights: rows are keys, columns are queries."""
    p = gl.exp2(s * (scale * LOG2_E) - lse2)
    if MASKED:
        last = seq_k - 1  # the last key that all queries of the tile see
        if CAUSAL:
            last = gl.minimum(start_m + seq_k - seq_q, last)
        if start_n + 63 > last:
            offs_m = start_m + gl.arange(
                0, s.shape[1], gl.SliceLayout(0, s.type.layout)
            )
            offs_n = start_n + gl.arange(0, 64, gl.SliceLayout(1, s.type.layout))
            seen = (offs_n < seq_k)[:, None]
            if CAUSAL:
                seen &= offs_n[:, None] <= (offs_m + seq_k - seq_q)[None, :]
            p = gl.where(seen, p, 0.0)
    return p


@gluon.jit
def consume(
    given,
    tiles,
    bars,
    at,
    W: gl.constexpr,
    GROUP: gl.constexpr,
    CAUSAL: gl.constexpr,
    MASKED: gl.constexpr,
    ADD: gl.constexpr,
    AHEAD: gl.constexpr,
    LATE: gl.constexpr,
    SHARED: gl.constexpr,
):
    dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k, heads = given
    k_all, v_all, ring, rows_ring, ds_all = tiles
    kv_full, full, empty, rows_full, rows_empty, ds_full, done = bars
    batch, kv_head, start_n, first, steps = at
    PLACES: gl.constexpr = ring.shape[0]
    ROWS: gl.constexpr = rows_ring.shape[0]
    BLOCK_M: gl.constexpr = ring.shape[3]
    BLOCK_D: gl.constexpr = ring.shape[4]
    HALF: gl.constexpr = BLOCK_D // 2
    dtype: gl.constexpr = ring.dtype
    SCORES: gl.constexpr = rows_of_warps(BLOCK_M)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    PART: gl.constexpr = rows_of_warps(HALF)
    LEFT: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=2)
    no_scores = gl.zeros([64, BLOCK_M], gl.float32, SCORES)
    no_dq = gl.zeros([BLOCK_M, HALF], gl.float32, PART)
    dk = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    dv = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    k = k_all.index(W).reshape([64, BLOCK_D])
    v = v_all.index(W).reshape([64, BLOCK_D])
    own = k.slice(W * HALF, HALF, dim=1)
    other = k_all.index(1 - W).reshape([64, BLOCK_D]).slice(W * HALF, HALF, dim=1)
    start_n += 64 * W
    start_m, row = (
        first,
        ((batch * heads + kv_head * GROUP).to(gl.int64))
        * (gl.cdiv(seq_q, BLOCK_M) * BLOCK_M),
    )
    mbarrier.wait(kv_full.index(0), 0)
    mbarrier.wait(kv_full.index(1), 0)
    if AHEAD:
        mbarrier.wait(full.index(0), 0)
        q_first = ring.index(0).reshape([BLOCK_M, BLOCK_D])
        s = warpgroup_mma(k, q_first.permute((1, 0)), no_scores, use_acc=False)
    DS: gl.constexpr = ds_all.shape[0] // 2
    before = row + start_m
    for i in range(GROUP * steps):
        n = 2 * i
        q = ring.index(n % PLACES).reshape([BLOCK_M, BLOCK_D])
        do = ring.index((n + 1) % PLACES).reshape([BLOCK_M, BLOCK_D])
        if not AHEAD:
            mbarrier.wait(full.index(n % PLACES), n // PLACES & 1)
            s = warpgroup_mma(
                k, q.permute((1, 0)), no_scores, use_acc=False, is_async=True
            )
        mbarrier.wait(full.index((n + 1) % PLACES), (n + 1) // PLACES & 1)
        dp = warpgroup_mma(
            v, do.permute((1, 0)), no_scores, use_acc=False, is_async=True
        )
        mbarrier.wait(rows_full.index(n % ROWS), n // ROWS & 1)
        lse2 = rows_ring.index(n % ROWS).reshape([1, BLOCK_M]).load(SCORES)
        mbarrier.arrive(rows_empty.index(n % ROWS))
        if not AHEAD:
            s = warpgroup_mma_wait(1, deps=[s])
        p = weigh(s, lse2, scale, start_m, start_n, seq_q, seq_k, CAUSAL, MASKED)
        mbarrier.wait(rows_full.index((n + 1) % ROWS), (n + 1) // ROWS & 1)
        # p is handed through the wait: else it is computed after it.
        dp, p = warpgroup_mma_wait(0, deps=[dp, p])
        delta = rows_ring.index((n + 1) % ROWS).reshape([1, BLOCK_M]).load(SCORES)
        mbarrier.arrive(rows_empty.index((n + 1) % ROWS))
        ds = (p * (dp - delta)).to(dtype)
        p = gl.convert_layout(p.to(dtype), LEFT)
        dv = warpgroup_mma(p, do, dv, is_async=True)
        ds_all.index(i % DS * 2 + W).store(ds)
        fence_async_shared()
        mbarrier.arrive(ds_full.index(i % DS * 2 + W))
        if LATE:  # dQ of the tile before
            j = i + DS - 1
            phase = j // DS & 1 ^ 1
        else:
            j = i
            phase = j // DS & 1
            before = row + start_m
        dq = warpgroup_mma(
            ds_all.index(j % DS * 2 + W).permute((1, 0)),
            own,
            no_dq,
            use_acc=False,
            is_async=True,
        )
        mbarrier.wait(ds_full.index(j % DS * 2 + 1 - W), phase)
        dq = warpgroup_mma(
            ds_all.index(j % DS * 2 + 1 - W).permute((1, 0)), other, dq, is_async=True
        )
        if SHARED:
            dk = warpgroup_mma(ds_all.index(i % DS * 2 + W), q, dk, is_async=True)
        else:
            ds = gl.convert_layout(ds, LEFT)
            dk = warpgroup_mma(ds, q, dk, is_async=True)
        if AHEAD:
            if i + 1 < GROUP * steps:
                mbarrier.wait(full.index((n + 2) % PLACES), (n + 2) // PLACES & 1)
            q_next = ring.index((n + 2) % PLACES).reshape([BLOCK_M, BLOCK_D])
            s = warpgroup_mma(
                k, q_next.permute((1, 0)), no_scores, use_acc=False, is_async=True
            )
            dq, dv = warpgroup_mma_wait(2, deps=[dq, dv])
        else:
            dq, dv = warpgroup_mma_wait(1, deps=[dq, dv])
        mbarrier.arrive(empty.index((n + 1) % PLACES))
        if LATE:
            if i > 0:
                add(dq_sum, dq, before, W, BLOCK_D, ADD)
            before = row + start_m
        else:
            add(dq_sum, dq, before, W, BLOCK_D, ADD)
        if AHEAD:
            s, dk = warpgroup_mma_wait(0, deps=[s, dk])
        else:
            dk = warpgroup_mma_wait(0, deps=[dk])
        mbarrier.arrive(empty.index(n % PLACES))
        start_m += BLOCK_M
        if GROUP > 1:
            if start_m >= seq_q:
                start_m = first
                row += gl.cdiv(seq_q, BLOCK_M) * BLOCK_M
    if LATE:
        j = GROUP * steps - 1
        mbarrier.wait(ds_full.index(j % DS * 2 + 1 - W), j // DS & 1)
        dq = warpgroup_mma(
            ds_all.index(j % DS * 2 + W).permute((1, 0)), own, no_dq, use_acc=False
        )
        dq = warpgroup_mma(ds_all.index(j % DS * 2 + 1 - W).permute((1, 0)), other, dq)
        add(dq_sum, dq, before, W, BLOCK_D, ADD)
    mbarrier.arrive(done)
    v.store(dv.to(dtype))
    mbarrier.wait(done, 0)
    k.store((dk * scale).to(dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(
        dv_desc, [batch, kv_head, start_n, 0], v_all.index(W)
    )
    tma.async_copy_shared_to_global(
        dk_desc, [batch, kv_head, start_n, 0], k_all.index(W)
    )
    tma.store_wait(0)


@triton.jit
def convert_kernel(
    dq_sum,
    dq_ptr,
    dq_strides,
    scale,
    heads,
    seq_q: tl.int32,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    FLAT: tl.constexpr,
):
    """dQ of its sums, which lie as the threads held them."""
    blocks = tl.cdiv(seq_q, BLOCK_M)
    pair = (tl.program_id(0) // blocks).to(tl.int64)
    db, dh, dm = dq_strides
    start_m = tl.program_id(0) % blocks * BLOCK_M
    dq_sum += tl.program_id(0).to(tl.int64) * BLOCK_M * BLOCK_D
    dq = tl.load(dq_sum + tl.arange(0, BLOCK_M * BLOCK_D))
    if FLAT:
        dq = dq.reshape(2, BLOCK_D // 32, 2, BLOCK_M // 16, 8, 4, 2, 2)
        dq = dq.permute(3, 2, 4, 0, 1, 6, 5, 7)
    dq = dq.reshape(BLOCK_M, BLOCK_D) * scale
    offs_m, offs_d = (
        start_m + tl.arange(0, BLOCK_M)[:, None],
        tl.arange(0, BLOCK_D)[None, :],
    )
    dq_ptr += pair // heads * db + pair % heads * dh
    tl.store(
        dq_ptr + offs_m.to(tl.int64) * dm + offs_d,
        dq.to(dq_ptr.dtype.element_ty),
        mask=(offs_m < seq_q) & (offs_d < HEAD_DIM),
    )


@gluon.jit
def backward_kernel(
    q_desc, do_desc, rows_desc, k_desc, v_desc, dk_desc, dv_desc, dq_sum, scale,
    SECTION, GROUP: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
    PLACES: gl.constexpr, ADD: gl.constexpr, AHEAD: gl.constexpr, LATE: gl.constexpr,
    SHARED: gl.constexpr,
):  # fmt: skip
    BLOCK_M: gl.constexpr = q_desc.block_type.shape[2]
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
        first = gl.maximum(start_n + seq_q - seq_k, 0) // BLOCK_M * BLOCK_M
    steps = gl.cdiv(seq_q - first, BLOCK_M)

    dtype: gl.constexpr = q_desc.dtype
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    k = gl.allocate_shared_memory(dtype, [2, 1, 1, 64, BLOCK_D], k_desc.layout)
    v = gl.allocate_shared_memory(dtype, [2, 1, 1, 64, BLOCK_D], k_desc.layout)
    ring = gl.allocate_shared_memory(
        dtype, [PLACES, 1, 1, BLOCK_M, BLOCK_D], q_desc.layout
    )
    rows = gl.allocate_shared_memory(
        gl.float32, [4, 1, 1, 1, BLOCK_M], rows_desc.layout
    )
    DS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, BLOCK_M], dtype)
    ds = gl.allocate_shared_memory(dtype, [8 if LATE else 4, 64, BLOCK_M], DS)
    bars = (
        barriers(2, 1), barriers(PLACES, 1), barriers(PLACES, 2), barriers(4, 1),
        barriers(4, 2), barriers(8 if LATE else 4, 1), barriers(1, 2).index(0),
    )  # fmt: skip
    at = (batch, kv_head, start_n, first, steps)
    given = (dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k, heads)
    descs = (q_desc, do_desc, rows_desc, k_desc, v_desc)
    tiles = (k, v, ring, rows, ds)
    gl.warp_specialize(
        [
            (consume, (given, tiles, bars, at, 0, GROUP, CAUSAL, MASKED, ADD, AHEAD, LATE, SHARED)),
            (consume, (given, tiles, bars, at, 1, GROUP, CAUSAL, MASKED, ADD, AHEAD, LATE, SHARED)),
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
    causal: bool = False, scale: float | None = None, places: int = 4,
    section: int = 1, block_m: int = 64, add: str = "flat", ahead: bool = False, late: bool = False, shared: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v: dq not the same bits in every run.

    Args:
        q: [batch, heads, seq_q, head_dim], float16 or bfloat16, on a Hopper GPU;
            head_dim a multiple of 8 up to 128. What descriptors cannot take is copied.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        o, do: what the forward pass returned, and its gradient: as q.
        lse, dlse: so of the natural logsumexp: [batch, heads, seq_q], float32.
        causal, scale: as in the forward pass; head_dim ** -0.5 if None.

    Returns dq, dk, dv: as q, k and v, in their layouts unless these were copied.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, appendix B.1.
    """
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
    tiles_m = triton.cdiv(seq_q, block_m)
    dq_sum = torch.zeros(
        (batch, heads, tiles_m * block_m, block_d), dtype=torch.float32, device=q.device
    )
    line = triton.cdiv(seq_q, 4) * 4
    rows = torch.empty((batch, heads, 2, line), dtype=torch.float32, device=q.device)
    descs = []
    for x in (q, do, k, v, dk, dv):
        block = [1, 1, block_m if len(descs) < 2 else 64, block_d]
        layout = gl.NVMMASharedLayout.get_default_for(block, DTYPES[q.dtype])
        descs.append(TensorDescriptor.from_tensor(x, block, layout))
    rows_layout = gl.NVMMASharedLayout(
        swizzle_byte_width=0, element_bitwidth=32, rank=4
    )
    rows_desc = TensorDescriptor.from_tensor(
        rows[..., :seq_q], [1, 1, 1, block_m], rows_layout
    )
    with torch.cuda.device_of(q):
        rows_kernel[(triton.cdiv(seq_q, 64) * batch * heads,)](
            o, do, lse, dlse, rows, o.stride()[:3], do.stride()[:3], heads, seq_q, line,
            head_dim, block_d,
        )  # fmt: skip
        backward_kernel[(triton.cdiv(seq_k, 128) * batch * kv_heads,)](
            *descs[:2], rows_desc, *descs[2:], dq_sum, scale, section, GROUP=heads // kv_heads, CAUSAL=causal,
            MASKED=causal or seq_k % 128 > 0, PLACES=places,
            ADD=add, AHEAD=ahead, LATE=late, SHARED=shared, num_warps=4,
        )  # fmt: skip
        if add == "flat":
            convert_kernel[(tiles_m * batch * heads,)](
                dq_sum,
                dq,
                dq.stride()[:3],
                scale,
                heads,
                seq_q,
                head_dim,
                block_m,
                block_d,
                True,
            )
        else:
            torch.mul(dq_sum[:, :, :seq_q, :head_dim], scale, out=dq)
    return dq, dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v, do = (torch.randn(2, 3, 200, 80).cuda().half() for _ in range(4))
        exact = [x.double().requires_grad_() for x in (q, k, v)]
        o = torch.nn.functional.scaled_dot_product_attention(*exact)
        o.backward(do.double())
        lse = torch.logsumexp(q.double() @ k.double().mT * 80**-0.5, dim=-1).float()
        found = attention_backward(q, k, v, o.detach().half(), lse, do)
        errors = [(dx - x.grad).abs().max() for dx, x in zip(found, exact, strict=True)]
        print("cuda: largest errors", *(f"{error:.1e}" for error in errors))
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
