"""FlashAttention-2 in Gluon, overlapped: scores of a tile beside sums of another."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from snippets.hopper.gluon_flash import finish, mask, prepare, rows_of_warps, softmax
from snippets.hopper.gluon_specialised import barriers


# --8<-- [start:kernel]
# --8<-- [start:stages]
@gluon.jit
def load_stage(k_desc, k_rows, v_desc, v_rows, rings, full, empty, n):
    """Ask for stage n, as soon as it is empty: a tile of K and one of V."""
    k_ring, v_ring = rings
    STAGES: gl.constexpr = k_ring.shape[0]
    mbarrier.wait(empty.index(n % STAGES), (n // STAGES & 1) ^ 1)
    bar = full.index(n % STAGES)
    mbarrier.expect(bar, k_desc.block_type.nbytes + v_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(k_desc, k_rows, bar, k_ring.index(n % STAGES))
    tma.async_copy_global_to_shared(v_desc, v_rows, bar, v_ring.index(n % STAGES))


@gluon.jit
def take_stage(rings, full, n):
    """K, turned, and V of stage n, as soon as both are there."""
    k_ring, v_ring = rings
    STAGES: gl.constexpr = k_ring.shape[0]
    tile: gl.constexpr = [k_ring.shape[3], k_ring.shape[4]]
    mbarrier.wait(full.index(n % STAGES), n // STAGES & 1)
    k, v = k_ring.index(n % STAGES), v_ring.index(n % STAGES)
    return k.reshape(tile).permute((1, 0)), v.reshape(tile)


# --8<-- [end:stages]
# --8<-- [start:produce]
@gluon.jit
def produce(descs, q, q_full, rings, bars, at):
    """The producer, one warp: stage i has K of tile i and V of the tile before it."""
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles = at
    full, empty = bars
    CONSUMERS: gl.constexpr = q.shape[0]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    for w in gl.static_range(CONSUMERS):
        rows = [batch, head, start_m + 64 * w, 0]
        mbarrier.expect(q_full.index(w), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, rows, q_full.index(w), q.index(w))
    kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
    # At both ends one half lies outside of its tensor: zeros come, and nothing is read.
    for i in range(tiles + 1):
        k_rows = [batch, kv_head, (tiles - 1 - i) * BLOCK_N, 0]
        v_rows = [batch, kv_head, (tiles - i) * BLOCK_N, 0]
        load_stage(k_desc, k_rows, v_desc, v_rows, rings, full, empty, i)


# --8<-- [end:produce]
# --8<-- [start:consume]
@gluon.jit
def consume(given, q_tile, q_full, bars, at):
    """A consumer: while tile i is summed, tile i + 1 is scored."""
    o_desc, lse_ptr, rings, scale_log2, seq_k = given
    batch, head, start_m, tiles = at
    full, empty = bars
    STAGES: gl.constexpr = rings[0].shape[0]
    BLOCK_N: gl.constexpr = rings[0].shape[3]
    BLOCK_D: gl.constexpr = rings[0].shape[4]
    SCORES: gl.constexpr = rows_of_warps(BLOCK_N)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=2)
    m_i = gl.full([64], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    l_i = gl.zeros([64, 8], gl.float32, rows_of_warps(8))
    acc = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, SCORES)
    q = q_tile.reshape([64, BLOCK_D])

    # --8<-- [start:first]
    mbarrier.wait(q_full, 0)
    k, _no_v = take_stage(rings, full, 0)
    s = warpgroup_mma(q, k, no_scores, use_acc=False)
    mbarrier.arrive(empty.index(0))
    s = mask(s, (tiles - 1) * BLOCK_N, seq_k)
    p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
    p = gl.convert_layout(p.to(q.dtype), WEIGHTS)
    # --8<-- [end:first]

    # --8<-- [start:loop]
    for i in range(1, tiles):
        k, v = take_stage(rings, full, i)
        # --8<-- [line:scores]
        s = warpgroup_mma(q, k, no_scores, use_acc=False, is_async=True)
        # --8<-- [line:sums]
        acc = warpgroup_mma(p, v, acc, is_async=True)
        # --8<-- [line:first_wait]
        s = warpgroup_mma_wait(1, deps=[s])
        p_next, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        # --8<-- [line:second_wait]
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index(i % STAGES))
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
        p = gl.convert_layout(p_next.to(q.dtype), WEIGHTS)
    # --8<-- [end:loop]

    # --8<-- [start:last]
    _no_k, v = take_stage(rings, full, tiles)
    acc = warpgroup_mma(p, v, acc)
    finish(m_i, l_i, acc, q_tile, o_desc, lse_ptr, batch, head, start_m)
    # --8<-- [end:last]


# --8<-- [end:consume]
@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2, STAGES: gl.constexpr
):  # fmt: skip
    # --8<-- [start:where]
    blocks = gl.cdiv(q_desc.shape[2], 128)
    batch = gl.program_id(0) // blocks // q_desc.shape[1]
    head = gl.program_id(0) // blocks % q_desc.shape[1]
    start_m = gl.program_id(0) % blocks * 128
    tiles = gl.cdiv(k_desc.shape[2], k_desc.block_type.shape[2])
    # --8<-- [end:where]
    # --8<-- [start:memory]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    q = gl.allocate_shared_memory(dtype, [2, 1, 1, 64, BLOCK_D], q_desc.layout)
    stages: gl.constexpr = [STAGES, 1, 1, BLOCK_N, BLOCK_D]
    k_ring = gl.allocate_shared_memory(dtype, stages, k_desc.layout)
    v_ring = gl.allocate_shared_memory(dtype, stages, v_desc.layout)
    q_full, full, empty = barriers(2, 1), barriers(STAGES, 1), barriers(STAGES, 2)
    # --8<-- [end:memory]
    # --8<-- [start:partitions]
    descs, rings, bars = (q_desc, k_desc, v_desc), (k_ring, v_ring), (full, empty)
    given = (o_desc, lse_ptr, rings, scale_log2, k_desc.shape[2])
    at = (batch, head, start_m, tiles)
    two = (batch, head, start_m + 64, tiles)
    # The launch's own 4 warps are a consumer; 4 more warps and a single one join it.
    gl.warp_specialize(
        [
            (consume, (given, q.index(0), q_full.index(0), bars, at)),
            (consume, (given, q.index(1), q_full.index(1), bars, two)),
            (produce, (descs, q, q_full, rings, bars, at)),
        ],
        worker_num_warps=[4, 1],
        worker_num_regs=[240, 24],
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
        causal: False; gluon_causal.py takes True.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        block_n: keys of a tile: 16, 32, 64 or 128; 64 at most if head_dim > 128.

    Returns o, as q and in its layout, and lse: [batch, heads, seq_q], float32, natural
        logarithm. Rows without keys, or with all scores -inf, have o = 0, lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, algorithm 2.
    """
    if causal:
        raise ValueError("causal is True; it must be False: see gluon_causal.py")
    o, lse, scale_log2, descs = prepare(q, k, v, scale, block_n)
    if descs:
        programs = triton.cdiv(q.shape[2], 128) * q.shape[0] * q.shape[1]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *descs, lse, scale_log2, STAGES=2, num_warps=4
            )
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v = (torch.randn(2, 4, 200, 80, device="cuda").half() for _ in range(3))
        o, lse = attention(q, k, v)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
