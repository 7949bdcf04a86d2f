"""FlashAttention-2 on float8 for Hopper, in Gluon: persistent, keys in fours."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma

from snippets.attention.flash2_fp8 import quantise
from snippets.hopper import fp8_tile as tile
from snippets.hopper.gluon_specialised import barriers, load, take


# --8<-- [start:kernel]
# --8<-- [start:attend]
@gluon.jit
def attend(sums, q, keys, values, scale, ends, first, last, end, ON_BAND: gl.constexpr):
    """Score tiles first to last - 1 of the walk, and sum them."""
    m_i, l_i, acc = sums
    k_ring, k_full, k_empty = keys
    v_ring, v_full, v_empty = values
    PLACES: gl.constexpr = k_ring.shape[0]
    no_scores = gl.zeros([64, 128], gl.float32, tile.rows_of_warps(128))
    for i in range(first, last):
        mbarrier.wait(k_full.index(i % PLACES), i // PLACES & 1)
        k = k_ring.index(i % PLACES).reshape([128, q.shape[1]])
        s = warpgroup_mma(q, k.permute((1, 0)), no_scores, use_acc=False)
        mbarrier.arrive(k_empty.index(i % PLACES))
        if ON_BAND:
            s = tile.mask(s, (end - 1 - i) * 128, ends)
        p, m_i, l_i, alpha = tile.softmax(s, m_i, l_i, scale)
        acc = tile.add(acc, alpha, p, take(v_ring, v_full, i))
        mbarrier.arrive(v_empty.index(i % PLACES))
    return m_i, l_i, acc


# --8<-- [end:attend]
# --8<-- [start:place]
@gluon.jit
def place(turn, q_desc, v_desc, BLOCK_M: gl.constexpr, CAUSAL: gl.constexpr):
    """Whether this program has a block in this turn; which, and how many tiles."""
    heads, seq_q, seq_k = q_desc.shape[1], q_desc.shape[2], v_desc.shape[3]
    blocks = gl.cdiv(seq_q, BLOCK_M)
    if CAUSAL:  # a block from the end of a head, then one from its beginning
        n = gl.program_id(0) + turn // 2 * gl.num_programs(0)
        pair, at = n // gl.cdiv(blocks, 2), n % gl.cdiv(blocks, 2)
        there = (turn % 2 == 0) | (2 * at + 1 < blocks)
        block = gl.where(turn % 2 == 0, blocks - 1 - at, at) * BLOCK_M
        last = gl.minimum(block + BLOCK_M + seq_k - seq_q, seq_k)
    else:
        n = gl.program_id(0) + turn * gl.num_programs(0)
        pair, block, there, last = n // blocks, n % blocks * BLOCK_M, True, seq_k
    there = there & (pair < q_desc.shape[0] * heads)
    tiles = gl.maximum(gl.cdiv(last, 128), 1)  # one, all of it masked, for no keys
    return there, (pair // heads, pair % heads, block, tiles)


# --8<-- [end:place]
# --8<-- [start:produce]
@gluon.jit
def produce(descs, rings, turns, CAUSAL: gl.constexpr):
    """The producer, one warp: it asks for the tiles of all blocks, one by one."""
    q_desc, k_desc, v_desc, _o_desc = descs
    queries, keys, values = rings
    q, q_full, q_empty = queries
    k_ring, k_full, k_empty = keys
    v_ring, v_full, v_empty = values
    CONSUMERS: gl.constexpr = q.shape[0]
    heads, kv_heads = q_desc.shape[1], v_desc.shape[1]
    first, blocks = 0, 0  # tiles and blocks so far
    for turn in range(turns):
        there, at = place(turn, q_desc, v_desc, 64 * CONSUMERS, CAUSAL)
        batch, head, block, tiles = at
        kv_head = head // (heads // kv_heads)
        if there:
            for i in range(first, first + tiles):
                start_n = (first + tiles - 1 - i) * 128
                fours = [batch * kv_heads + kv_head, 0, start_n // 4, 0, 0]
                load(k_desc, fours, k_ring, k_full, k_empty, i)
                if i == first:  # after K, whose place is empty sooner
                    for w in gl.static_range(CONSUMERS):
                        rows = [batch, head, block + 64 * w, 0]
                        load(q_desc, rows, q, q_full, q_empty, blocks * CONSUMERS + w)
                columns = [batch, kv_head, 0, start_n]
                load(v_desc, columns, v_ring, v_full, v_empty, i)
            first += tiles
            blocks += 1


# --8<-- [end:produce]
# --8<-- [start:consume]
@gluon.jit
def consume(given, W: gl.constexpr, CAUSAL: gl.constexpr):
    """A consumer, four warps: 64 rows of each block of the program."""
    descs, rings, o, lse_ptr, scales, scale_log2, turns = given
    q_desc, _k_desc, v_desc, o_desc = descs
    queries, keys, values = rings
    q_ring, q_full, q_empty = queries
    heads, seq_q = q_desc.shape[1], q_desc.shape[2]
    kv_heads, seq_k = v_desc.shape[1], v_desc.shape[3]
    first, blocks = 0, 0
    for turn in range(turns):
        there, at = place(turn, q_desc, v_desc, 64 * q_ring.shape[0], CAUSAL)
        batch, head, block, tiles = at
        if there:
            pair = batch * heads + head
            kv_pair = pair // (heads // kv_heads)
            scale, o_scale = tile.scales_of(scales, scale_log2, pair, kv_pair)
            sums = tile.begin(q_ring.shape[4])
            start_m, end, whole, ends = block + 64 * W, first + tiles, seq_k, seq_k
            if CAUSAL:  # tiles that end beyond the first query's keys are masked
                offs_m = start_m + gl.arange(0, 64, sums[0].type.layout)
                ends = gl.minimum(offs_m + 1 + seq_k - seq_q, seq_k)[:, None]
                whole = gl.minimum(gl.maximum(block + 1 + seq_k - seq_q, 0), seq_k)
            band = end - whole // 128
            mbarrier.wait(q_full.index(W), blocks & 1)
            q = q_ring.index(W).reshape([64, q_ring.shape[4]])
            sums = attend(sums, q, keys, values, scale, ends, first, band, end, True)
            sums = attend(sums, q, keys, values, scale, ends, band, end, end, False)
            mbarrier.arrive(q_empty.index(W))
            o_tile = o.index(W)
            tile.finish(sums, o_scale, o_tile, o_desc, lse_ptr, batch, head, start_m)
            first, blocks = end, blocks + 1


# --8<-- [end:consume]
@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale, k_scale, v_scale, scale_log2,
    turns, PLACES: gl.constexpr, CONSUMERS: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    # --8<-- [start:memory]
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    rows: gl.constexpr = [CONSUMERS, 1, 1, 64, BLOCK_D]
    q = gl.allocate_shared_memory(q_desc.dtype, rows, q_desc.layout)
    o = gl.allocate_shared_memory(o_desc.dtype, rows, o_desc.layout)
    fours: gl.constexpr = [PLACES, 1, 2, 32, 2, BLOCK_D]
    k = gl.allocate_shared_memory(k_desc.dtype, fours, k_desc.layout)
    columns: gl.constexpr = [PLACES, 1, 1, BLOCK_D, 128]
    v = gl.allocate_shared_memory(v_desc.dtype, columns, v_desc.layout)
    queries = (q, barriers(CONSUMERS, 1), barriers(CONSUMERS, 1))
    keys = (k, barriers(PLACES, 1), barriers(PLACES, CONSUMERS))
    values = (v, barriers(PLACES, 1), barriers(PLACES, CONSUMERS))
    # --8<-- [end:memory]
    descs, rings = (q_desc, k_desc, v_desc, o_desc), (queries, keys, values)
    given = (descs, rings, o, lse_ptr, (q_scale, k_scale, v_scale), scale_log2, turns)
    # The launch's own 4 warps are a consumer; more warps and a single one join it.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (consume, (given, 0, CAUSAL)), (consume, (given, 1, CAUSAL)),
                (produce, (descs, rings, turns, CAUSAL)),
            ],
            worker_num_warps=[4, 1], worker_num_regs=[240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (consume, (given, 0, CAUSAL)), (consume, (given, 1, CAUSAL)),
                (consume, (given, 2, CAUSAL)), (produce, (descs, rings, turns, CAUSAL)),
            ],
            worker_num_warps=[4, 4, 1], worker_num_regs=[160, 160, 24],
        )  # fmt: skip


# --8<-- [end:kernel]
# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_scale: torch.Tensor,
    k_scale: torch.Tensor, v_scale: torch.Tensor, *, causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Attention of q * q_scale, k * k_scale and v * v_scale, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float8_e4m3fn, on a Hopper GPU, head_dim 16,
            32 ... or 256. The last stride is 1, the others multiples of 16 bytes.
        k: [batch, kv_heads, seq_k, head_dim], else as q. kv_heads divides heads: query
            head h reads head h // (heads // kv_heads). Copied if seq_k % 4 is not 0,
            or if [batch, kv_heads] cannot be viewed as one dimension.
        v: [batch, kv_heads, head_dim, seq_k]: transposed, and else as q.
        q_scale, k_scale, v_scale: [batch, heads] of each, float32, positive.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.

    Returns o: bfloat16, as q, in its layout; lse: [batch, heads, seq_q], float32,
        natural logarithm. A row without keys has o = 0 and lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, section 3.3.
    """
    o, lse, arguments = tile.prepare(q, k, v, (q_scale, k_scale, v_scale), scale)
    if arguments:
        (batch, heads, seq_q, head_dim), pairs = q.shape, 2 if causal else 1
        # --8<-- [start:turns]
        consumers = 2 if head_dim > 128 or (causal and seq_q <= 32 * head_dim) else 3
        items = batch * heads * triton.cdiv(triton.cdiv(seq_q, 64 * consumers), pairs)
        gpu = torch.cuda.get_device_properties(q.device)
        programs = min(items, gpu.multi_processor_count)
        turns = triton.cdiv(items, programs) * pairs
        # --8<-- [end:turns]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *arguments, turns, 2, CONSUMERS=consumers, CAUSAL=causal, num_warps=4
            )
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v = (torch.randn(2, 4, 160, 80, device="cuda") for _ in range(3))
        (q8, q_scale), (k8, k_scale), (v8, v_scale) = map(quantise, (q, k, v))
        o, lse = attention(q8, k8, v8.mT.contiguous(), q_scale, k_scale, v_scale)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
        print(f"cuda: largest error {error:.1e}, that of rounded inputs included")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
