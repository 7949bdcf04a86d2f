"""FlashAttention-2 in Gluon, warp-specialised: one warp loads, eight compute."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
)

from snippets.hopper.gluon_flash import finish, mask, prepare, rows_of_warps, softmax


# --8<-- [start:kernel]
# --8<-- [start:produce]
@gluon.jit
def load(desc, at, ring, full, empty, n):
    """Ask for a tile, the n-th in the ring, as soon as its place is empty."""
    PLACES: gl.constexpr = ring.shape[0]
    # --8<-- [line:empty]
    mbarrier.wait(empty.index(n % PLACES), (n // PLACES & 1) ^ 1)
    bar = full.index(n % PLACES)
    mbarrier.expect(bar, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, at, bar, ring.index(n % PLACES))


@gluon.jit
def produce(descs, q, q_full, ring, bars, at):
    """The producer, one warp: it asks for tiles, and does nothing else."""
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles = at
    full, empty = bars
    CONSUMERS: gl.constexpr = q.shape[0]
    for w in gl.static_range(CONSUMERS):
        rows = [batch, head, start_m + 64 * w, 0]
        mbarrier.expect(q_full.index(w), q_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, rows, q_full.index(w), q.index(w))
    kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
    for i in range(tiles):  # the last tile first: it alone reaches beyond the keys
        rows = [batch, kv_head, (tiles - 1 - i) * k_desc.block_type.shape[2], 0]
        load(k_desc, rows, ring, full, empty, 2 * i)
        load(v_desc, rows, ring, full, empty, 2 * i + 1)


# --8<-- [end:produce]
# --8<-- [start:attend]
@gluon.jit
def take(ring, full, n):
    """The n-th tile, as soon as it is there."""
    PLACES: gl.constexpr = ring.shape[0]
    # --8<-- [line:full]
    mbarrier.wait(full.index(n % PLACES), n // PLACES & 1)
    return ring.index(n % PLACES).reshape([ring.shape[3], ring.shape[4]])


@gluon.jit
def attend(
    m_i, l_i, acc, q, ring, full, empty, scale_log2, seq_k, first, last,
    SCORES: gl.constexpr, SUMS: gl.constexpr, LAST_KEYS: gl.constexpr,
):  # fmt: skip
    PLACES: gl.constexpr = ring.shape[0]
    BLOCK_N: gl.constexpr = ring.shape[3]
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, SCORES)
    for i in range(first, last):
        k = take(ring, full, 2 * i)
        s = warpgroup_mma(q, k.permute((1, 0)), no_scores, use_acc=False)
        # --8<-- [line:arrive]
        mbarrier.arrive(empty.index(2 * i % PLACES))
        if LAST_KEYS:
            s = mask(s, (seq_k - 1) // BLOCK_N * BLOCK_N, seq_k)
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
        p = gl.convert_layout(p.to(q.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
        v = take(ring, full, 2 * i + 1)
        acc = warpgroup_mma(p, v, acc)
        mbarrier.arrive(empty.index((2 * i + 1) % PLACES))
    return m_i, l_i, acc


# --8<-- [end:attend]
# --8<-- [start:consume]
@gluon.jit
def consume(given, q_tile, q_full, bars, at):
    """A consumer, four warps: 64 rows of the output, from tiles that others load."""
    o_desc, lse_ptr, ring, scale_log2, seq_k = given
    batch, head, start_m, tiles = at
    full, empty = bars
    BLOCK_D: gl.constexpr = ring.shape[4]
    SCORES: gl.constexpr = rows_of_warps(ring.shape[3])
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    m_i = gl.full([64], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    l_i = gl.zeros([64, 8], gl.float32, rows_of_warps(8))
    acc = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    q = q_tile.reshape([64, BLOCK_D])
    mbarrier.wait(q_full, 0)
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, ring, full, empty, scale_log2, seq_k, 0, 1,
        SCORES, SUMS, True,
    )  # fmt: skip
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, ring, full, empty, scale_log2, seq_k, 1, tiles,
        SCORES, SUMS, False,
    )  # fmt: skip
    finish(m_i, l_i, acc, q_tile, o_desc, lse_ptr, batch, head, start_m)


# --8<-- [end:consume]
@gluon.jit
def barriers(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """Some mbarriers; a phase of each takes so many arrivals."""
    bars = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        mbarrier.init(bars.index(i), count=ARRIVALS)
    return bars


@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2, PLACES: gl.constexpr
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
    places: gl.constexpr = [PLACES, 1, 1, BLOCK_N, BLOCK_D]
    ring = gl.allocate_shared_memory(dtype, places, k_desc.layout)
    q_full, full, empty = barriers(2, 1), barriers(PLACES, 1), barriers(PLACES, 2)
    # --8<-- [end:memory]
    # --8<-- [start:partitions]
    descs, bars = (q_desc, k_desc, v_desc), (full, empty)
    given = (o_desc, lse_ptr, ring, scale_log2, k_desc.shape[2])
    at = (batch, head, start_m, tiles)
    two = (batch, head, start_m + 64, tiles)
    # The launch's own 4 warps are a consumer; 4 more warps and a single one join it.
    gl.warp_specialize(
        [
            (consume, (given, q.index(0), q_full.index(0), bars, at)),
            (consume, (given, q.index(1), q_full.index(1), bars, two)),
            (produce, (descs, q, q_full, ring, bars, at)),
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
    Source: Shah et al., "FlashAttention-3", 2024, section 3.1.
    """
    if causal:
        raise ValueError("causal is True; it must be False: see gluon_causal.py")
    o, lse, scale_log2, descs = prepare(q, k, v, scale, block_n)
    if descs:
        programs = triton.cdiv(q.shape[2], 128) * q.shape[0] * q.shape[1]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](
                *descs, lse, scale_log2, PLACES=4, num_warps=4
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
