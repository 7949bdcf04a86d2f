"""FlashAttention-2 for Hopper, in Gluon: causal, with consumers in turns."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from snippets.hopper.gluon_flash import finish, prepare, rows_of_warps, softmax
from snippets.hopper.gluon_overlapped import produce, take_stage
from snippets.hopper.gluon_specialised import barriers


# --8<-- [start:kernel]
# --8<-- [start:mask]
@gluon.jit
def mask(s, start_n, ends):
    """-inf for keys from `ends` on, which each row has for itself."""
    # Of column 8 a + b the thread gives b alone: 8 a is a constant of the code.
    eights = s.reshape([64, s.shape[1] // 8, 8])
    EIGHTS: gl.constexpr = eights.type.layout
    COLS: gl.constexpr = gl.SliceLayout(1, EIGHTS)
    a = gl.arange(0, s.shape[1] // 8, gl.SliceLayout(0, gl.SliceLayout(2, EIGHTS)))
    b = gl.arange(0, 8, gl.SliceLayout(0, COLS))
    ends = gl.convert_layout(ends - start_n, gl.SliceLayout(1, COLS))[:, None]
    seen = 8 * a[None, :][:, :, None] < (ends - b[None, :])[:, None, :]
    s_seen = gl.where(seen, eights, float("-inf")).reshape(s.shape)
    return gl.convert_layout(s_seen, s.type.layout)


# --8<-- [end:mask]
# --8<-- [start:attend]
@gluon.jit
def attend(
    m_i, l_i, acc, p, q, rings, bars, scale_log2, ends, first, last, end,
    SCORES: gl.constexpr, SUMS: gl.constexpr, W: gl.constexpr, ON_BAND: gl.constexpr,
):  # fmt: skip
    """Score tiles first to last - 1 of the walk, and sum the one before each."""
    full, empty, go = bars
    STAGES: gl.constexpr = rings[0].shape[0]
    BLOCK_N: gl.constexpr = rings[0].shape[3]
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, SCORES)
    for i in range(first, last):
        k, v = take_stage(rings, full, i)
        # --8<-- [line:turn]
        mbarrier.wait(go.index(W), i & 1)
        s = warpgroup_mma(q, k, no_scores, use_acc=False, is_async=True)
        acc = warpgroup_mma(p, v, acc, is_async=True)
        # --8<-- [line:next]
        mbarrier.arrive(go.index((W + 1) % go.shape[0]))
        s = warpgroup_mma_wait(1, deps=[s])
        if ON_BAND:
            s = mask(s, (end - 1 - i) * BLOCK_N, ends)
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        p = gl.convert_layout(p.to(v.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
        # p is handed through the wait: so its numbers stay packed between the loops.
        acc, p = warpgroup_mma_wait(0, deps=[acc, p])
        mbarrier.arrive(empty.index(i % STAGES))
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
    return m_i, l_i, acc, p


# --8<-- [end:attend]
# --8<-- [start:walk]
@gluon.jit
def walk(
    q, rings, bars, scale_log2, block, first, tiles, seq_q, seq_k,
    W: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    """The sums of 64 rows over the tiles of their block, the first being `first`."""
    full, empty, go = bars
    BLOCK_N: gl.constexpr = rings[0].shape[3]
    BLOCK_D: gl.constexpr = rings[0].shape[4]
    SCORES: gl.constexpr = rows_of_warps(BLOCK_N)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    m_i = gl.full([64], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    l_i = gl.zeros([64, 8], gl.float32, rows_of_warps(8))
    acc = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    ends = gl.full([64], seq_k, gl.int32, gl.SliceLayout(1, SCORES))
    end, band = first + tiles, 1
    # --8<-- [start:band]
    if CAUSAL:  # tiles that end beyond the first query's keys are masked
        offs_m = block + 64 * W + gl.arange(0, 64, gl.SliceLayout(1, SCORES))
        ends = gl.minimum(offs_m + 1 + seq_k - seq_q, seq_k)
        whole = gl.minimum(gl.maximum(block + 1 + seq_k - seq_q, 0), seq_k)
        band = gl.maximum(tiles - whole // BLOCK_N, 1)
    # --8<-- [end:band]
    k, _no_v = take_stage(rings, full, first)
    mbarrier.wait(go.index(W), first & 1)
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, SCORES)
    s = warpgroup_mma(q, k, no_scores, use_acc=False, is_async=True)
    mbarrier.arrive(go.index((W + 1) % go.shape[0]))
    s = warpgroup_mma_wait(0, deps=[s])
    mbarrier.arrive(empty.index(first % empty.shape[0]))
    s = mask(s, (tiles - 1) * BLOCK_N, ends)
    p, m_i, l_i, _alpha = softmax(s, m_i, l_i, scale_log2)
    p = gl.convert_layout(p.to(k.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
    if CAUSAL:
        m_i, l_i, acc, p = attend(
            m_i, l_i, acc, p, q, rings, bars, scale_log2, ends,
            first + 1, first + band, end, SCORES, SUMS, W, True,
        )  # fmt: skip
    m_i, l_i, acc, p = attend(
        m_i, l_i, acc, p, q, rings, bars, scale_log2, ends,
        first + band, end, end, SCORES, SUMS, W, False,
    )  # fmt: skip
    _no_k, v = take_stage(rings, full, end)
    return m_i, l_i, warpgroup_mma(p, v, acc)


# --8<-- [end:walk]
@gluon.jit
def consume(given, at, q, q_full, rings, bars, W: gl.constexpr, CAUSAL: gl.constexpr):
    """A consumer, four warps: 64 rows of the output."""
    o_desc, lse_ptr, scale_log2, seq_k = given
    batch, head, block, tiles = at
    mbarrier.wait(q_full.index(W), 0)
    m_i, l_i, acc = walk(
        q.index(W).reshape([64, q.shape[4]]), rings, bars, scale_log2, block, 0, tiles,
        o_desc.shape[2], seq_k, W, CAUSAL,
    )  # fmt: skip
    finish(m_i, l_i, acc, q.index(W), o_desc, lse_ptr, batch, head, block + 64 * W)


@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2, STAGES: gl.constexpr,
    CONSUMERS: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    # --8<-- [start:where]
    seq_q, seq_k = q_desc.shape[2], k_desc.shape[2]
    pairs = q_desc.shape[0] * q_desc.shape[1]
    blocks = gl.cdiv(seq_q, 64 * CONSUMERS)
    if CAUSAL:  # the blocks with most tiles first, of all heads
        pair = gl.program_id(0) % pairs
        block = (blocks - 1 - gl.program_id(0) // pairs) * 64 * CONSUMERS
        last = gl.minimum(gl.maximum(block + 64 * CONSUMERS + seq_k - seq_q, 0), seq_k)
    else:
        pair = gl.program_id(0) // blocks
        block = gl.program_id(0) % blocks * 64 * CONSUMERS
        last = seq_k
    tiles = gl.maximum(gl.cdiv(last, k_desc.block_type.shape[2]), 1)  # at least one
    at = (pair // q_desc.shape[1], pair % q_desc.shape[1], block, tiles)
    # --8<-- [end:where]
    # --8<-- [start:memory]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    q = gl.allocate_shared_memory(dtype, [CONSUMERS, 1, 1, 64, BLOCK_D], q_desc.layout)
    stages: gl.constexpr = [STAGES, 1, 1, BLOCK_N, BLOCK_D]
    k_ring = gl.allocate_shared_memory(dtype, stages, k_desc.layout)
    v_ring = gl.allocate_shared_memory(dtype, stages, v_desc.layout)
    full, empty = barriers(STAGES, 1), barriers(STAGES, CONSUMERS)
    q_full, go = barriers(CONSUMERS, 1), barriers(CONSUMERS, 1)
    mbarrier.arrive(go.index(0))  # the first consumer's turn
    # --8<-- [end:memory]
    # --8<-- [start:partitions]
    bars, rings, descs = (full, empty, go), (k_ring, v_ring), (q_desc, k_desc, v_desc)
    given = (o_desc, lse_ptr, scale_log2, seq_k)
    which = (0, 1) if CONSUMERS == 2 else (0, 1, 2)
    gl.warp_specialize(
        [(consume, (given, at, q, q_full, rings, bars, w, CAUSAL)) for w in which]
        + [(produce, (descs, q, q_full, rings, (full, empty), at))],
        worker_num_warps=[4, 1] if CONSUMERS == 2 else [4, 4, 1],
        worker_num_regs=[240, 24] if CONSUMERS == 2 else [160, 160, 24],
    )
    # --8<-- [end:partitions]


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, block_n: int = 128,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim <= 256], float16 or bfloat16, on a Hopper GPU.
            The last stride is 1; rows, strides, address are multiples of 16 bytes.
        k, v: [batch, kv_heads, seq_k, head_dim], else as q. kv_heads divides heads:
            query head h reads head h // (heads // kv_heads).
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        block_n: keys of a tile: 16, 32, 64 or 128; 64 at most if head_dim > 128.

    Returns o, as q and in its layout, and lse: [batch, heads, seq_q], float32, natural
        logarithm. Rows without keys, or with all scores -inf, have o = 0, lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, algorithm 2.
    """
    o, lse, scale_log2, descs = prepare(q, k, v, scale, block_n)
    if descs:
        consumers = 3 if q.shape[3] <= 64 else 2
        programs = triton.cdiv(q.shape[2], 64 * consumers) * q.shape[0] * q.shape[1]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *descs, lse, scale_log2, STAGES=2, CONSUMERS=consumers, CAUSAL=causal,
                num_warps=4,
            )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v = (torch.randn(2, 4, 200, 80, device="cuda").half() for _ in range(3))
        o, lse = attention(q, k, v, causal=True)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        q, k, v = q.double(), k.double(), v.double()
        error = (o - sdpa(q, k, v, is_causal=True)).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
