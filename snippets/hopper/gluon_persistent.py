"""FlashAttention-2 for Hopper, in Gluon: programs that stay for many blocks."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from snippets.hopper.gluon_causal import walk
from snippets.hopper.gluon_flash import finish, prepare
from snippets.hopper.gluon_specialised import barriers, load


# --8<-- [start:kernel]
# --8<-- [start:place]
@gluon.jit
def place(n, group, q_desc, k_desc, BLOCK_M: gl.constexpr, CAUSAL: gl.constexpr):
    """The n-th block of the order: of which head it is, its row, and how many tiles."""
    heads, seq_q, last = q_desc.shape[1], q_desc.shape[2], k_desc.shape[2]
    blocks = gl.cdiv(seq_q, BLOCK_M)
    pair, block = n // blocks, n % blocks
    if CAUSAL:  # long blocks first, of `group` heads at a time, then all short ones
        pairs, long = q_desc.shape[0] * heads, gl.cdiv(blocks, 2)
        if n < pairs * long:
            done = n // (group * long) * group
            some, n = gl.minimum(group, pairs - done), n % (group * long)
            pair, block = done + n % some, blocks - 1 - n // some
        else:
            n -= pairs * long
            pair, block = n % pairs, blocks - long - 1 - n // pairs
        last = gl.minimum(gl.maximum((block + 1) * BLOCK_M + last - seq_q, 0), last)
    tiles = gl.cdiv(last, k_desc.block_type.shape[2])
    return pair // heads, pair % heads, block * BLOCK_M, tiles


# --8<-- [end:place]
# --8<-- [start:draw]
@gluon.jit
def draw(counter, box, told, heard, blocks):
    """The producer draws the program's next block, and puts its number into the box."""
    n = gl.num_programs(0) + gl.atomic_add(counter, 1)
    mbarrier.wait(heard.index(0), (blocks & 1) ^ 1)
    box.index(0).store(gl.full([1], n, gl.int32, gl.BlockedLayout([1], [32], [1], [0])))
    mbarrier.arrive(told.index(0))
    return n


@gluon.jit
def read(box, told, heard, blocks):
    """A consumer reads it there."""
    mbarrier.wait(told.index(0), blocks & 1)
    n = gl.max(box.index(0).load(gl.BlockedLayout([1], [32], [4], [0])), axis=0)
    mbarrier.arrive(heard.index(0))
    return n


# --8<-- [end:draw]
# --8<-- [start:produce]
@gluon.jit
def produce(given, CAUSAL: gl.constexpr):
    """The producer, one warp: it asks for the tiles of all blocks, one by one."""
    descs, memory, bars, counter, items, group, _lse_ptr, _scale_log2 = given
    q_desc, k_desc, v_desc, _o_desc = descs
    q, _o, ring, box = memory
    q_full, q_empty, full, empty, _go, told, heard = bars
    CONSUMERS: gl.constexpr = q.shape[0]
    BLOCK_M: gl.constexpr = 64 * CONSUMERS
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    first, blocks, n = 0, 0, gl.program_id(0)  # tiles and blocks so far
    while n < items:
        batch, head, block, tiles = place(n, group, q_desc, k_desc, BLOCK_M, CAUSAL)
        if CAUSAL:
            n = draw(counter, box, told, heard, blocks)
        else:  # all blocks are equally long
            n += gl.num_programs(0)
        kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
        start_n = (tiles - 1) * BLOCK_N
        if tiles > 0:  # before Q, because its place is empty sooner
            load(k_desc, [batch, kv_head, start_n, 0], ring, full, empty, 2 * first)
        for w in gl.static_range(CONSUMERS):
            rows, bar = [batch, head, block + 64 * w, 0], q_full.index(w)
            mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)
            mbarrier.expect(bar, q_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(q_desc, rows, bar, q.index(w))
        for i in range(first, first + tiles):
            load(v_desc, [batch, kv_head, start_n, 0], ring, full, empty, 2 * i + 1)
            start_n -= BLOCK_N
            if start_n >= 0:
                load(k_desc, [batch, kv_head, start_n, 0], ring, full, empty, 2 * i + 2)
        first += tiles
        blocks += 1


# --8<-- [end:produce]
# --8<-- [start:consume]
@gluon.jit
def consume(given, W: gl.constexpr, CAUSAL: gl.constexpr):
    """A consumer, four warps: 64 rows of each block of the program."""
    descs, memory, bars, _counter, items, group, lse_ptr, scale_log2 = given
    q_desc, k_desc, _v_desc, o_desc = descs
    q, o, ring, box = memory
    q_full, q_empty, full, empty, go, told, heard = bars
    BLOCK_M: gl.constexpr = 64 * q.shape[0]
    OWN: gl.constexpr = q.shape[4] <= 128  # the output has memory of its own
    first, blocks, n = 0, 0, gl.program_id(0)
    while n < items:
        batch, head, block, tiles = place(n, group, q_desc, k_desc, BLOCK_M, CAUSAL)
        n = read(box, told, heard, blocks) if CAUSAL else n + gl.num_programs(0)
        mbarrier.wait(q_full.index(W), blocks & 1)
        m_i, l_i, acc = walk(
            q.index(W), ring, (full, empty, go), scale_log2, block, first, tiles,
            q_desc.shape[2], k_desc.shape[2], W, CAUSAL,
        )  # fmt: skip
        first += tiles
        blocks += 1
        if OWN:  # the next Q may come while this output goes
            mbarrier.arrive(q_empty.index(W))
        finish(m_i, l_i, acc, o.index(W), o_desc, lse_ptr, batch, head, block + 64 * W)
        if not OWN:
            mbarrier.arrive(q_empty.index(W))


# --8<-- [end:consume]
@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2, counter, items, group,
    PLACES: gl.constexpr, CONSUMERS: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    # --8<-- [start:memory]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    rows: gl.constexpr = [CONSUMERS, 1, 1, 64, BLOCK_D]
    q = gl.allocate_shared_memory(dtype, rows, q_desc.layout)
    # Beside Q where there is room, else in its place.
    o = gl.allocate_shared_memory(dtype, rows, q_desc.layout) if BLOCK_D <= 128 else q
    places: gl.constexpr = [PLACES, 1, 1, BLOCK_N, BLOCK_D]
    ring = gl.allocate_shared_memory(dtype, places, k_desc.layout)
    q_full, q_empty = barriers(CONSUMERS, 1), barriers(CONSUMERS, 1)
    full, empty = barriers(PLACES, 1), barriers(PLACES, CONSUMERS)
    go, told, heard = barriers(CONSUMERS, 1), barriers(1, 1), barriers(1, CONSUMERS)
    one: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    box = gl.allocate_shared_memory(gl.int32, [1, 1], one)  # the next block
    mbarrier.arrive(go.index(0))  # the first consumer's turn
    # --8<-- [end:memory]
    descs, memory = (q_desc, k_desc, v_desc, o_desc), (q, o, ring, box)
    bars = (q_full, q_empty, full, empty, go, told, heard)
    given = (descs, memory, bars, counter, items, group, lse_ptr, scale_log2)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [(consume, (given, 0, CAUSAL)), (consume, (given, 1, CAUSAL)),
             (produce, (given, CAUSAL))], [4, 1], [240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [(consume, (given, 0, CAUSAL)), (consume, (given, 1, CAUSAL)),
             (consume, (given, 2, CAUSAL)), (produce, (given, CAUSAL))],
            [4, 4, 1], [160, 160, 24],
        )  # fmt: skip


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
        k, v: [batch, kv_heads, seq_k, head_dim], else as q; kv_heads divides heads.
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
        # --8<-- [start:order]
        short = q.shape[2] < (8192 if causal else 2048)
        consumers = 2 if q.shape[3] > 64 or short else 3
        pairs = q.shape[0] * q.shape[1]
        items = pairs * triton.cdiv(q.shape[2], 64 * consumers)
        gpu = torch.cuda.get_device_properties(q.device)
        programs = min(items, gpu.multi_processor_count)
        some = max(1, 2**24 // (2 * k[0, 0].nbytes))  # their K, V fit into L2 well
        group = min(pairs, some * (q.shape[1] // k.shape[1]))
        counter = torch.zeros(1, dtype=torch.int32, device=q.device)
        # --8<-- [end:order]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *descs, lse, scale_log2, counter, items, group, PLACES=4,
                CONSUMERS=consumers, CAUSAL=causal, num_warps=4,
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
        true = sdpa(q.double(), k.double(), v.double(), is_causal=True)
        error = (o - true).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
