"""Attention's backward pass for Hopper, in Gluon: one warp loads, eight compute."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from snippets.backward.one_kernel import aligned, check
from snippets.hopper.gluon_causal import attention
from snippets.hopper.gluon_flash import rows_of_warps
from snippets.hopper.gluon_specialised import barriers, load, take
from snippets.hopper.postprocess import postprocess
from snippets.hopper.preprocess import LOG2_E, preprocess


# --8<-- [start:kernel]
# --8<-- [start:produce]
@gluon.jit
def produce(descs, kv, kv_full, rings, at, GROUP: gl.constexpr):
    """The producer, one warp: K and V, then Q, dO, and lse and delta of their rows."""
    q_desc, do_desc, k_desc, v_desc, rows_desc = descs
    ring, full, lines, lines_full, empty = rings
    batch, kv_head, start_n, first, steps = at
    mbarrier.expect(kv_full, 4 * k_desc.block_type.nbytes)
    for w in gl.static_range(2):
        keys = [batch, kv_head, start_n + 64 * w, 0]
        hopper.tma.async_copy_global_to_shared(k_desc, keys, kv_full, kv.index(w))
        hopper.tma.async_copy_global_to_shared(v_desc, keys, kv_full, kv.index(2 + w))
    for i in range(GROUP * steps):
        head, start_m = kv_head * GROUP + i // steps, first + i % steps * 64
        load(q_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i)
        load(rows_desc, [batch, head, 0, start_m], lines, lines_full, empty, 2 * i)
        load(do_desc, [batch, head, start_m, 0], ring, full, empty, 2 * i + 1)
        load(rows_desc, [batch, head, 1, start_m], lines, lines_full, empty, 2 * i + 1)


# --8<-- [end:produce]
@gluon.jit
def consume(
    given, shared, rings, at, W: gl.constexpr, GROUP: gl.constexpr,
    CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """A consumer, four warps: dK and dV of 64 keys, dQ in half of its columns."""
    dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k = given
    kv_tiles, kv_full, ds_tiles, ds_full, read = shared
    ring, full, lines, lines_full, empty = rings
    batch, kv_head, start_n, first, steps = at
    BLOCK_D: gl.constexpr = ring.shape[4]
    HALF: gl.constexpr = BLOCK_D // 2
    SCORES: gl.constexpr = rows_of_warps(64)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    LEFT: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=2)
    FOURS: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    no_s = gl.zeros([64, 64], gl.float32, SCORES)
    no_dq = gl.zeros([64, HALF], gl.float32, rows_of_warps(HALF))
    dk = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    dv = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    k = kv_tiles.index(W).reshape([64, BLOCK_D])
    v = kv_tiles.index(2 + W).reshape([64, BLOCK_D])
    k_own = k.slice(W * HALF, HALF, dim=1)
    k_other = kv_tiles.index(1 - W).reshape([64, BLOCK_D]).slice(W * HALF, HALF, dim=1)
    offs_n = start_n + 64 * W + gl.arange(0, 64, gl.SliceLayout(1, SCORES))
    start_m, a_head = first, gl.cdiv(seq_q, 64).to(gl.int64) * 64 * BLOCK_D
    dq_sum += (batch * dk_desc.shape[1] + kv_head) * GROUP * a_head
    mbarrier.wait(kv_full, 0)
    for i in range(GROUP * steps):
        n, m = 2 * i, 2 * i + 1
        # --8<-- [start:scores]
        q = take(ring, full, n)
        s = warpgroup_mma(k, q.permute((1, 0)), no_s, use_acc=False, is_async=True)
        do = take(ring, full, m)
        dp = warpgroup_mma(v, do.permute((1, 0)), no_s, use_acc=False, is_async=True)
        lse2 = take(lines, lines_full, n).load(SCORES)
        s = hopper.warpgroup_mma_wait(1, deps=[s])
        p = gl.exp2(s * (scale * LOG2_E) - lse2)
        if MASKED:
            seen = gl.minimum(start_m + 1 + seq_k - seq_q, seq_k) if CAUSAL else seq_k
            if start_n + 64 * W + 64 > seen:  # not all queries see all keys
                ends = seq_k
                if CAUSAL:
                    offs_m = start_m + gl.arange(0, 64, gl.SliceLayout(0, SCORES))
                    ends = gl.minimum(offs_m + 1 + seq_k - seq_q, seq_k)[None, :]
                p = gl.where(offs_n[:, None] < ends, p, 0.0)
        dp, p = hopper.warpgroup_mma_wait(0, deps=[dp, p])  # p: or it comes later
        ds = (p * (dp - take(lines, lines_full, m).load(SCORES))).to(q.dtype)
        # --8<-- [end:scores]
        # --8<-- [start:products]
        p = gl.convert_layout(p.to(q.dtype), LEFT)
        dv = warpgroup_mma(p, do, dv, is_async=True)
        own, other = i % 2 * 2 + W, i % 2 * 2 + 1 - W
        ds_tiles.index(own).store(ds)
        hopper.fence_async_shared()
        mbarrier.arrive(ds_full.index(own))
        ds_own = ds_tiles.index(own).permute((1, 0))
        dq = warpgroup_mma(ds_own, k_own, no_dq, use_acc=False, is_async=True)
        mbarrier.wait(ds_full.index(other), i // 2 & 1)
        ds_other = ds_tiles.index(other).permute((1, 0))
        dq = warpgroup_mma(ds_other, k_other, dq, is_async=True)
        dk = warpgroup_mma(gl.convert_layout(ds, LEFT), q, dk, is_async=True)
        dq, dv = hopper.warpgroup_mma_wait(1, deps=[dq, dv])
        mbarrier.arrive(empty.index(m % 4))
        dq = dq.reshape([4, 2, 8, HALF // 16, 2, 4, 2]).permute((3, 1, 0, 2, 5, 4, 6))
        dq = gl.convert_layout(dq.reshape([64 * HALF]), FOURS)  # nothing moves
        half = dq_sum + start_m.to(gl.int64) * BLOCK_D + W * 64 * HALF
        gl.atomic_add(half + gl.arange(0, 64 * HALF, FOURS), dq, sem="relaxed")
        dk = hopper.warpgroup_mma_wait(0, deps=[dk])
        mbarrier.arrive(empty.index(n % 4))
        # --8<-- [end:products]
        start_m += 64
        if start_m >= seq_q:  # the next head
            start_m = first
            dq_sum += a_head
    # --8<-- [start:finish]
    mbarrier.arrive(read)
    v.store(dv.to(v.dtype))
    mbarrier.wait(read, 0)  # the other has read these keys, too
    k.store((dk * scale).to(k.dtype))
    hopper.fence_async_shared()
    at = [batch, kv_head, start_n + 64 * W, 0]
    hopper.tma.async_copy_shared_to_global(dv_desc, at, kv_tiles.index(2 + W))
    hopper.tma.async_copy_shared_to_global(dk_desc, at, kv_tiles.index(W))
    hopper.tma.store_wait(0)
    # --8<-- [end:finish]


# --8<-- [start:program]
@gluon.jit
def backward_kernel(
    q_desc, do_desc, k_desc, v_desc, dk_desc, dv_desc, rows_desc, dq_sum, scale,
    GROUP: gl.constexpr, CAUSAL: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    seq_q, seq_k = q_desc.shape[2], k_desc.shape[2]
    blocks, pairs = gl.cdiv(seq_k, 128), k_desc.shape[0] * k_desc.shape[1]
    four = gl.program_id(0) // (4 * blocks) * 4  # take turns: fewer add to a row
    turns, turn = gl.minimum(4, pairs - four), gl.program_id(0) - four * blocks
    pair, start_n = four + turn % turns, turn // turns * 128
    batch, kv_head = pair // k_desc.shape[1], pair % k_desc.shape[1]
    first = gl.maximum(start_n + seq_q - seq_k, 0) // 64 * 64 if CAUSAL else 0
    at = (batch, kv_head, start_n, first, gl.cdiv(seq_q - first, 64))
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    DS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], q_desc.dtype)
    kv = gl.allocate_shared_memory(q_desc.dtype, [4, 1, 1, 64, BLOCK_D], k_desc.layout)
    ring = gl.allocate_shared_memory(kv.dtype, kv.shape, kv.layout)
    lines = gl.allocate_shared_memory(gl.float32, [4, 1, 1, 1, 64], rows_desc.layout)
    ds = gl.allocate_shared_memory(q_desc.dtype, [4, 64, 64], DS)
    rings = (ring, barriers(4, 1), lines, barriers(4, 1), barriers(4, 2))
    kv_full, ds_full, read = barriers(1, 1), barriers(4, 1), barriers(1, 2)
    given = (dk_desc, dv_desc, dq_sum, scale, seq_q, seq_k)
    shared = (kv, kv_full.index(0), ds, ds_full, read.index(0))
    descs = (q_desc, do_desc, k_desc, v_desc, rows_desc)
    gl.warp_specialize(
        [
            (consume, (given, shared, rings, at, 0, GROUP, CAUSAL, MASKED)),
            (consume, (given, shared, rings, at, 1, GROUP, CAUSAL, MASKED)),
            (produce, (descs, kv, kv_full.index(0), rings, at, GROUP)),
        ],
        worker_num_warps=[4, 1], worker_num_regs=[240, 24],
    )  # fmt: skip


# --8<-- [end:program]
# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of softmax(q k^T * scale) v: dq not the same bits in every run.

    Args:
        q, o, do: [batch, heads, seq_q, head_dim], float16 or bfloat16, on a Hopper GPU;
            head_dim a multiple of 8 up to 128. What descriptors cannot take is copied.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        lse, dlse: natural logsumexp, and its gradient: [batch, heads, seq_q], float32.
        causal, scale: as in the forward pass; head_dim ** -0.5 if None.
    Returns dq, dk, dv: as q, k and v, in their layouts unless these were copied.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, appendix B.1.
    """
    check(q, k, v, o, lse, do, dlse)
    if q.shape[3] > 128:
        raise ValueError(f"q has head_dim {q.shape[3]}; it must be 8, 16, ..., or 128")
    q, k, v, do = (aligned(x) for x in (q, k, v, do))
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    if not q.numel() or not k.numel():  # a descriptor cannot be of an empty tensor
        return torch.zeros_like(q), dk.zero_(), dv.zero_()
    scale = head_dim**-0.5 if scale is None else scale
    block = [1, 1, 64, 64 if head_dim <= 64 else 128]
    layout = gl.NVMMASharedLayout.get_default_for(block, gl.float16)  # 16 bits
    line = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=4)
    make = TensorDescriptor.from_tensor
    descs = [make(x, block, layout) for x in (q, do, k, v, dk, dv)]
    rows = preprocess(o, do, lse, dlse=dlse)
    dq_sum = rows.new_zeros(batch, heads, triton.cdiv(seq_q, 64), 64 * block[3])
    with torch.cuda.device_of(q):
        backward_kernel[(triton.cdiv(seq_k, 128) * batch * kv_heads,)](
            *descs, make(rows, [1, 1, 1, 64], line), dq_sum, scale, heads // kv_heads,
            causal, causal or seq_k % 128 > 0, num_warps=4,
        )  # fmt: skip
    return postprocess(dq_sum, q, scale=scale), dk, dv


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v, do = (torch.randn(2, 3, 200, 80).cuda().half() for _ in range(4))
        found = attention_backward(q, k, v, *attention(q, k, v), do)
        exact = [x.double().requires_grad_() for x in (q, k, v)]
        torch.nn.functional.scaled_dot_product_attention(*exact).backward(do.double())
        errors = [(dx - x.grad).abs().max() for dx, x in zip(found, exact, strict=True)]
        print("cuda: largest errors", *(f"{error:.1e}" for error in errors))
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
