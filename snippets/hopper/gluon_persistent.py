"""FlashAttention-2 for Hopper, in Gluon: programs that stay for many blocks."""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
)

from snippets.hopper.gluon_causal import walk
from snippets.hopper.gluon_flash import finish, prepare, rows_of_warps
from snippets.hopper.gluon_overlapped import load_stage
from snippets.hopper.gluon_specialised import barriers


# --8<-- [start:kernel]
# --8<-- [start:place]
@gluon.jit
def place(turn, group, q_desc, k_desc, BLOCK_M: gl.constexpr):
    """Whether this program has a block in this turn; which, and how many tiles."""
    heads, seq_q, seq_k = q_desc.shape[1], q_desc.shape[2], k_desc.shape[2]
    total, blocks = q_desc.shape[0] * heads, gl.cdiv(seq_q, BLOCK_M)
    me, programs, even = gl.program_id(0), gl.num_programs(0), turn % 2 == 0
    head, block = (me + turn * programs) // blocks, (me + turn * programs) % blocks
    there, last = head < total, seq_k
    if group > 0:  # there is a causal mask
        if k_desc.block_type.shape[3] > 64:  # one from a head's end, one from its start
            n, half = me + turn // 2 * programs, gl.cdiv(blocks, 2)
            head, at = n // half, n % half
            there = (head < total) & (even | (2 * at + 1 < blocks))
            block = gl.where(even, blocks - 1 - at, at)
        else:  # of `group` heads the longest blocks first, of the next the shortest
            n = turn * programs + gl.where(even, me, programs - 1 - me)
            first, r = n // (group * blocks) * group, n % (group * blocks)
            head, at, there = first + r % group, r // group, first < total
            falls = (total - first) // group % 2 == 1
            block = gl.where(falls, blocks - 1 - at, at)
        last = gl.minimum(gl.maximum((block + 1) * BLOCK_M + seq_k - seq_q, 0), seq_k)
    tiles = gl.maximum(gl.cdiv(last, k_desc.block_type.shape[2]), 1)  # at least one
    return there, (head // heads, head % heads, block * BLOCK_M, tiles)


# --8<-- [end:place]
# --8<-- [start:produce]
@gluon.jit
def produce(descs, memory, bars, turns, group):
    """The producer, one warp. The last V of a block comes with the next block's K."""
    q_desc, k_desc, v_desc, _o_desc = descs
    q, _o, rings = memory
    q_full, q_empty, full, empty, _go = bars
    CONSUMERS: gl.constexpr = q.shape[0]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    n, blocks = 0, 0  # tiles and blocks so far
    v_batch, v_head, v_start = 0, 0, k_desc.shape[2]  # beyond its keys: no V as yet
    for turn in range(turns):
        there, at = place(turn, group, q_desc, k_desc, 64 * CONSUMERS)
        batch, head, block, tiles = at
        kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
        if there:
            for i in range(tiles):
                start_n = (tiles - 1 - i) * BLOCK_N
                v_rows = [v_batch, v_head, v_start, 0]
                k_rows = [batch, kv_head, start_n, 0]
                load_stage(k_desc, k_rows, v_desc, v_rows, rings, full, empty, n)
                v_batch, v_head, v_start = batch, kv_head, start_n
                n += 1
                if i == 0:  # after K, because its place is empty later
                    for w in gl.static_range(CONSUMERS):
                        rows, bar = [batch, head, block + 64 * w, 0], q_full.index(w)
                        mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)
                        mbarrier.expect(bar, q_desc.block_type.nbytes)
                        tma.async_copy_global_to_shared(q_desc, rows, bar, q.index(w))
            blocks += 1
    k_rows, v_rows = [0, 0, k_desc.shape[2], 0], [v_batch, v_head, v_start, 0]
    load_stage(k_desc, k_rows, v_desc, v_rows, rings, full, empty, n)


# --8<-- [end:produce]
# --8<-- [start:consume]
@gluon.jit
def consume(given, W: gl.constexpr, CAUSAL: gl.constexpr):
    """A consumer, four warps: 64 rows of each block of the program."""
    descs, memory, bars, turns, group, lse_ptr, scale_log2 = given
    q_desc, k_desc, _v_desc, o_desc = descs
    q_places, o, rings = memory
    q_full, q_empty, full, empty, go = bars
    BLOCK_M: gl.constexpr = 64 * q_places.shape[0]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    HELD: gl.constexpr = BLOCK_D <= 128 and BLOCK_M == 128  # Q fits into registers
    first, blocks = 0, 0
    for turn in range(turns):
        there, at = place(turn, group, q_desc, k_desc, BLOCK_M)
        batch, head, block, tiles = at
        if there:
            mbarrier.wait(q_full.index(W), blocks & 1)
            q = q_places.index(W).reshape([64, BLOCK_D])
            # --8<-- [start:give]
            if HELD:  # so that the next Q may come at once
                q = q.load(gl.DotOperandLayout(0, rows_of_warps(BLOCK_N), k_width=2))
                fence_async_shared()  # TMA may write when this is read, and no sooner
                mbarrier.arrive(q_empty.index(W))
            m_i, l_i, acc = walk(
                q, rings, (full, empty, go), scale_log2, block, first, tiles,
                q_desc.shape[2], k_desc.shape[2], W, CAUSAL,
            )  # fmt: skip
            first += tiles
            blocks += 1
            if not HELD and BLOCK_D <= 128:  # as this output has a place of its own
                mbarrier.arrive(q_empty.index(W))
            start_m = block + 64 * W
            finish(m_i, l_i, acc, o.index(W), o_desc, lse_ptr, batch, head, start_m)
            if not HELD and BLOCK_D > 128:
                mbarrier.arrive(q_empty.index(W))
            # --8<-- [end:give]


# --8<-- [end:consume]
@gluon.jit(do_not_specialize=["turns", "group"])
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2, turns, group,
    STAGES: gl.constexpr, CONSUMERS: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    # --8<-- [start:memory]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    rows: gl.constexpr = [CONSUMERS, 1, 1, 64, BLOCK_D]
    q = gl.allocate_shared_memory(dtype, rows, q_desc.layout)
    # Beside Q where there is room, else in its place.
    o = gl.allocate_shared_memory(dtype, rows, q_desc.layout) if BLOCK_D <= 128 else q
    stages: gl.constexpr = [STAGES, 1, 1, BLOCK_N, BLOCK_D]
    k_ring = gl.allocate_shared_memory(dtype, stages, k_desc.layout)
    v_ring = gl.allocate_shared_memory(dtype, stages, v_desc.layout)
    q_full, q_empty = barriers(CONSUMERS, 1), barriers(CONSUMERS, 1)
    full, empty = barriers(STAGES, 1), barriers(STAGES, CONSUMERS)
    go = barriers(CONSUMERS, 1)
    mbarrier.arrive(go.index(0))  # the first consumer's turn
    # --8<-- [end:memory]
    descs, memory = (q_desc, k_desc, v_desc, o_desc), (q, o, (k_ring, v_ring))
    bars = (q_full, q_empty, full, empty, go)
    given = (descs, memory, bars, turns, group, lse_ptr, scale_log2)
    which = (0, 1) if CONSUMERS == 2 else (0, 1, 2)
    gl.warp_specialize(
        [(consume, (given, w, CAUSAL)) for w in which]
        + [(produce, (descs, memory, bars, turns, group))],
        worker_num_warps=[4, 1] if CONSUMERS == 2 else [4, 4, 1],
        worker_num_regs=[240, 24] if CONSUMERS == 2 else [160, 160, 24],
    )


# --8<-- [end:kernel]
# --8<-- [start:launch]
# --8<-- [start:signature]
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
    Source: Shah et al., "FlashAttention-3", 2024, and the schedulers of its code.
    """
    # --8<-- [end:signature]
    o, lse, scale_log2, descs = prepare(q, k, v, scale, block_n)
    if descs:
        # --8<-- [start:turns]
        short = q.shape[2] < (8192 if causal else 2048)
        consumers = 2 if q.shape[3] > 64 or short else 3
        total, blocks = q.shape[0] * q.shape[1], triton.cdiv(q.shape[2], 64 * consumers)
        in_pairs = causal and q.shape[3] > 64
        items = total * triton.cdiv(blocks, 2 if in_pairs else 1)
        gpu = torch.cuda.get_device_properties(q.device)
        programs = min(items, gpu.multi_processor_count)
        turns = triton.cdiv(items, programs) * (2 if in_pairs else 1)
        # Heads whose keys and values fit into 32 MiB of the L2 cache; 0 without a mask.
        fit = max(1, 2**25 * total // (2 * k.nbytes))
        group = math.gcd(total, 2 ** (fit.bit_length() - 1)) if causal else 0
        # --8<-- [end:turns]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *descs, lse, scale_log2, turns, group, STAGES=2, CONSUMERS=consumers,
                CAUSAL=causal, num_warps=4,
            )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        # --8<-- [start:call]
        q, k, v = (torch.randn(2, 4, 200, 80, device="cuda").half() for _ in range(3))
        o, lse = attention(q, k, v, causal=True)
        # --8<-- [end:call]
        sdpa = torch.nn.functional.scaled_dot_product_attention
        q, k, v = q.double(), k.double(), v.double()
        error = (o - sdpa(q, k, v, is_causal=True)).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
