"""FlashAttention-2 on float8 for Hopper, in Gluon: keys in the order of registers."""

import math

import torch
import triton
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

from snippets.attention.flash2_fp8 import check, quantise
from snippets.hopper.gluon_flash import LN_2
from snippets.hopper.gluon_specialised import barriers, load, take

P_BITS = gl.constexpr(8)  # weights times 2^8: the largest, 256, is below 448


# --8<-- [start:kernel]
# --8<-- [start:layouts]
@gluon.constexpr_function
def rows_of_warps(cols):
    """Which thread holds what of a result of 64 rows, if its factors have 8 bits."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, cols, 32])


@gluon.jit
def factor(p, SUMS: gl.constexpr):
    """Weights as the left factor of a product: each stays with its thread."""
    N: gl.constexpr = p.shape[1]
    p = p.to(gl.float8e4nv).reshape([64, 2, N // 4, 2]).permute((0, 2, 1, 3))
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=4)
    return gl.convert_layout(p.reshape([64, N]), WEIGHTS, assert_trivial=True)


@gluon.jit
def mask(s, start_n, ends):
    """-inf for keys from `ends` on, the keys being in K's order in shared memory."""
    HALF: gl.constexpr = s.shape[1] // 2
    col = gl.arange(0, s.shape[1], gl.SliceLayout(0, s.type.layout))
    offs_n = start_n + col % HALF // 2 * 4 + col // HALF * 2 + col % 2
    return gl.where(offs_n[None, :] < ends, s, float("-inf"))


# --8<-- [end:layouts]
# --8<-- [start:softmax]
@gluon.jit
def softmax(s, m_i, l_i, scale_log2):
    """The weights of a tile of scores, and by how much earlier sums shrink."""
    m_new = gl.maximum(m_i, gl.max(s, axis=1) * scale_log2)
    # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
    shift = gl.where(m_new == float("-inf"), 0.0, m_new)
    p = gl.exp2(s * scale_log2 - (shift[:, None] - P_BITS))
    alpha = gl.exp2(m_i - shift)
    return p, m_new, l_i * alpha + gl.sum(p, axis=1), alpha


# --8<-- [end:softmax]
# --8<-- [start:add]
@gluon.jit
def add(acc, alpha, p, v):
    """acc * alpha + p v, for at most 128 columns at a time."""
    COLS: gl.constexpr = acc[0].shape[1]
    SUMS: gl.constexpr = acc[0].type.layout
    p = factor(p, SUMS)
    alpha = gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
    no_sums = gl.zeros([64, COLS], gl.float32, SUMS)
    done = ()
    for c in gl.static_range(v.shape[0] // COLS):
        part = v.slice(c * COLS, COLS, dim=0).permute((1, 0))
        pv = warpgroup_mma(p, part, no_sums, use_acc=False, is_async=True)
        # What is handed through the wait is computed before it.
        waited = warpgroup_mma_wait(0, deps=(pv,) + done)
        if c == 0:
            done = (acc[c] * alpha + waited,)
        else:
            done = waited[1:] + (acc[c] * alpha + waited[0],)
    return done


# --8<-- [end:add]
# --8<-- [start:attend]
@gluon.jit
def attend(
    m_i, l_i, acc, q, rings, bars, scale_log2, ends, first, last, end,
    ON_BAND: gl.constexpr,
):  # fmt: skip
    """Score tiles first to last - 1 of the walk, and sum them."""
    k_ring, v_ring = rings
    k_full, k_empty, v_full, v_empty = bars
    PLACES: gl.constexpr = k_ring.shape[0]
    BLOCK_N: gl.constexpr = k_ring.shape[3]
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, rows_of_warps(BLOCK_N))
    for i in range(first, last):
        k = take(k_ring, k_full, i)
        s = warpgroup_mma(q, k.permute((1, 0)), no_scores, use_acc=False)
        mbarrier.arrive(k_empty.index(i % PLACES))
        if ON_BAND:
            s = mask(s, (end - 1 - i) * BLOCK_N, ends)
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        acc = add(acc, alpha, p, take(v_ring, v_full, i))
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
        last = gl.minimum(gl.maximum(block + BLOCK_M + seq_k - seq_q, 0), seq_k)
    else:
        n = gl.program_id(0) + turn * gl.num_programs(0)
        pair, block, there, last = n // blocks, n % blocks * BLOCK_M, True, seq_k
    there = there & (pair < q_desc.shape[0] * heads)
    tiles = gl.cdiv(last, v_desc.block_type.shape[3])
    return there, (pair // heads, pair % heads, block, tiles)


# --8<-- [end:place]
# --8<-- [start:produce]
@gluon.jit
def load_keys(k_desc, at, parts, full, empty, n, PLACES: gl.constexpr):
    """A tile of K: of each four keys the first two, then of each the last two."""
    PARTS: gl.constexpr = parts.shape[0] // PLACES
    batch, head, start_n = at
    mbarrier.wait(empty.index(n % PLACES), (n // PLACES & 1) ^ 1)
    bar = full.index(n % PLACES)
    mbarrier.expect(bar, PARTS * k_desc.block_type.nbytes)
    for i in gl.static_range(PARTS):  # the TMA unit fetches at most 128 columns
        rows = [batch, head, start_n // 4, i % 2 * 2, i // 2 * 128]
        part = parts.index(n % PLACES * PARTS + i)
        tma.async_copy_global_to_shared(k_desc, rows, bar, part)


@gluon.jit
def produce(given, CAUSAL: gl.constexpr):
    """The producer, one warp: it asks for the tiles of all blocks, one by one."""
    descs, memory, bars, turns = given
    q_desc, k_desc, v_desc, _o_desc = descs
    q, _o, k_parts, _k_ring, v_ring = memory
    q_full, q_empty, k_full, k_empty, v_full, v_empty = bars
    CONSUMERS: gl.constexpr = q.shape[0]
    PLACES: gl.constexpr = v_ring.shape[0]
    BLOCK_N: gl.constexpr = v_desc.block_type.shape[3]
    first, blocks = 0, 0  # tiles and blocks so far
    for turn in range(turns):
        there, at = place(turn, q_desc, v_desc, 64 * CONSUMERS, CAUSAL)
        batch, head, block, tiles = at
        kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
        if there:
            start_n = (tiles - 1) * BLOCK_N
            if tiles > 0:  # before Q, because its place is empty sooner
                rows = (batch, kv_head, start_n)
                load_keys(k_desc, rows, k_parts, k_full, k_empty, first, PLACES)
            for w in gl.static_range(CONSUMERS):
                where, bar = [batch, head, block + 64 * w, 0], q_full.index(w)
                mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)
                mbarrier.expect(bar, q_desc.block_type.nbytes)
                tma.async_copy_global_to_shared(q_desc, where, bar, q.index(w))
            for i in range(first, first + tiles):
                columns = [batch, kv_head, 0, start_n]
                load(v_desc, columns, v_ring, v_full, v_empty, i)
                start_n -= BLOCK_N
                if start_n >= 0:
                    rows = (batch, kv_head, start_n)
                    load_keys(k_desc, rows, k_parts, k_full, k_empty, i + 1, PLACES)
            first += tiles
            blocks += 1


# --8<-- [end:produce]
# --8<-- [start:consume]
@gluon.jit
def consume(given, values, W: gl.constexpr, CAUSAL: gl.constexpr):
    """A consumer, four warps: 64 rows of each block of the program."""
    descs, memory, bars, turns = given
    lse_ptr, q_scale, k_scale, v_scale, scale_log2 = values
    q_desc, k_desc, v_desc, o_desc = descs
    q, o, _k_parts, k_ring, v_ring = memory
    q_full, q_empty, k_full, k_empty, v_full, v_empty = bars
    BLOCK_N: gl.constexpr = k_ring.shape[3]
    BLOCK_D: gl.constexpr = k_ring.shape[4]
    COLS: gl.constexpr = 128 if BLOCK_D > 128 else BLOCK_D
    ROWS: gl.constexpr = gl.SliceLayout(1, rows_of_warps(BLOCK_N))
    heads, kv_heads = q_desc.shape[1], k_desc.shape[1]
    seq_q, seq_k = q_desc.shape[2], v_desc.shape[3]
    q_tile = q.index(W).reshape([64, BLOCK_D])
    o_tile = o.index(W).reshape([64, BLOCK_D])
    first, blocks = 0, 0
    for turn in range(turns):
        there, at = place(turn, q_desc, v_desc, 64 * q.shape[0], CAUSAL)
        batch, head, block, tiles = at
        if there:
            # --8<-- [start:scales]
            kv_head = batch * kv_heads + head // (heads // kv_heads)
            scale = gl.load(q_scale + batch * heads + head) * scale_log2
            scale *= gl.load(k_scale + kv_head)
            scale = gl.where(scale < 1.2e-38, 1.2e-38, scale)  # 0 * -inf is NaN
            o_scale = gl.load(v_scale + kv_head)
            # --8<-- [end:scales]
            # --8<-- [start:walk]
            m_i = gl.full([64], float("-inf"), gl.float32, ROWS)
            l_i = gl.zeros([64], gl.float32, ROWS)
            acc = ()
            for _ in gl.static_range(BLOCK_D // COLS):
                acc = acc + (gl.zeros([64, COLS], gl.float32, rows_of_warps(COLS)),)
            offs_m = block + 64 * W + gl.arange(0, 64, ROWS)
            end, band, ends = first + tiles, gl.minimum(tiles, 1), seq_k
            if CAUSAL:  # tiles that end beyond the first query's keys are masked
                ends = gl.minimum(offs_m + 1 + seq_k - seq_q, seq_k)[:, None]
                whole = gl.minimum(gl.maximum(block + 1 + seq_k - seq_q, 0), seq_k)
                band = gl.maximum(tiles - whole // BLOCK_N, band)
            mbarrier.wait(q_full.index(W), blocks & 1)
            rings, tiles_bars = (k_ring, v_ring), (k_full, k_empty, v_full, v_empty)
            m_i, l_i, acc = attend(
                m_i, l_i, acc, q_tile, rings, tiles_bars, scale, ends,
                first, first + band, end, True,
            )  # fmt: skip
            m_i, l_i, acc = attend(
                m_i, l_i, acc, q_tile, rings, tiles_bars, scale, ends,
                first + band, end, end, False,
            )  # fmt: skip
            mbarrier.arrive(q_empty.index(W))
            first, blocks = end, blocks + 1
            # --8<-- [end:walk]
            # --8<-- [start:finish]
            # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
            l_safe = gl.where(l_i == 0.0, 1.0, l_i)
            l_safe = gl.convert_layout(l_safe, gl.SliceLayout(1, acc[0].type.layout))
            for c in gl.static_range(BLOCK_D // COLS):
                part = acc[c] / l_safe[:, None] * o_scale
                o_tile.slice(c * COLS, COLS, dim=1).store(part.to(o_desc.dtype))
            fence_async_shared()
            rows = [batch, head, block + 64 * W, 0]
            tma.async_copy_shared_to_global(o_desc, rows, o.index(W))
            row = (batch * heads + head).to(gl.int64) * seq_q
            lse = (m_i + gl.log2(l_i) - P_BITS) * LN_2
            gl.store(lse_ptr + row + offs_m, lse, mask=offs_m < seq_q)
            tma.store_wait(0)
            # --8<-- [end:finish]


# --8<-- [end:consume]
@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale, k_scale, v_scale, scale_log2,
    turns, PLACES: gl.constexpr, CONSUMERS: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    # --8<-- [start:memory]
    BLOCK_N: gl.constexpr = v_desc.block_type.shape[3]
    BLOCK_D: gl.constexpr = v_desc.block_type.shape[2]
    dtype: gl.constexpr = q_desc.dtype
    rows: gl.constexpr = [CONSUMERS, 1, 1, 64, BLOCK_D]
    q = gl.allocate_shared_memory(dtype, rows, q_desc.layout)
    o = gl.allocate_shared_memory(o_desc.dtype, rows, o_desc.layout)
    part: gl.constexpr = k_desc.block_type.shape
    parts: gl.constexpr = PLACES * 2 * (BLOCK_D // part[4])
    k_parts = gl.allocate_shared_memory(dtype, [parts] + part, k_desc.layout)
    k_tile: gl.constexpr = [1, 1, BLOCK_N, BLOCK_D]
    keys: gl.constexpr = gl.NVMMASharedLayout.get_default_for(k_tile, dtype)
    k_ring = k_parts._reinterpret(dtype, [PLACES] + k_tile, keys)
    v_tiles: gl.constexpr = [PLACES, 1, 1, BLOCK_D, BLOCK_N]
    v_ring = gl.allocate_shared_memory(dtype, v_tiles, v_desc.layout)
    # --8<-- [end:memory]
    q_full, q_empty = barriers(CONSUMERS, 1), barriers(CONSUMERS, 1)
    k_full, k_empty = barriers(PLACES, 1), barriers(PLACES, CONSUMERS)
    v_full, v_empty = barriers(PLACES, 1), barriers(PLACES, CONSUMERS)
    bars = (q_full, q_empty, k_full, k_empty, v_full, v_empty)
    descs, memory = (q_desc, k_desc, v_desc, o_desc), (q, o, k_parts, k_ring, v_ring)
    given = (descs, memory, bars, turns)
    values = (lse_ptr, q_scale, k_scale, v_scale, scale_log2)
    # The launch's own 4 warps are a consumer; more warps and a single one join it.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (consume, (given, values, 0, CAUSAL)),
                (consume, (given, values, 1, CAUSAL)),
                (produce, (given, CAUSAL)),
            ],
            worker_num_warps=[4, 1],
            worker_num_regs=[240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (consume, (given, values, 0, CAUSAL)),
                (consume, (given, values, 1, CAUSAL)),
                (consume, (given, values, 2, CAUSAL)),
                (produce, (given, CAUSAL)),
            ],
            worker_num_warps=[4, 4, 1],
            worker_num_regs=[160, 160, 24],
        )


# --8<-- [end:kernel]
# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_scale: torch.Tensor,
    k_scale: torch.Tensor, v_scale: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, block_n: int = 128,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Attention of q * q_scale, k * k_scale and v * v_scale, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float8_e4m3fn, on a Hopper GPU, head_dim a
            multiple of 16 up to 256. The last stride is 1; strides and address are
            multiples of 16 bytes.
        k: [batch, kv_heads, seq_k, head_dim], else as q. kv_heads divides heads: query
            head h reads head h // (heads // kv_heads). Copied if seq_k % 4 is not 0.
        v: [batch, kv_heads, head_dim, seq_k]: transposed, and the rest as k.
        q_scale, k_scale, v_scale: [batch, heads] of each, float32, positive.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        block_n: keys of a tile: 32, 64 or 128.

    Returns o: bfloat16, as q, in its layout; lse: [batch, heads, seq_q], float32,
        natural logarithm. A row without keys has o = 0 and lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024, section 3.3.
    """
    # --8<-- [end:signature]
    check(q, k, v, q_scale, k_scale, v_scale)
    (batch, heads, seq_q, head_dim), (*_, seq_k) = q.shape, v.shape
    scale = head_dim**-0.5 if scale is None else scale
    if not scale > 0:
        raise ValueError(f"scale is {scale}; it must be positive")
    o = torch.empty_like(q, dtype=torch.bfloat16)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0 or seq_k == 0:  # a descriptor cannot be of an empty tensor
        return o.zero_(), lse.fill_(-math.inf)
    # --8<-- [start:fours]
    if seq_k % 4:
        more = (0, 0, 0, -seq_k % 4)
        k = torch.nn.functional.pad(k.view(torch.uint8), more).view(k.dtype)
    k = k.unflatten(2, (-1, 4))  # the keys in fours
    # --8<-- [end:fours]
    block_d = max(32, triton.next_power_of_2(head_dim))
    descs, k_tile = [], (1, 1, block_n // 4, 2, min(block_d, 128))
    rows, columns = (1, 1, 64, block_d), (1, 1, block_d, block_n)
    for x, block in ((q, rows), (k, k_tile), (v, columns), (o, rows)):
        dtype = gl.bfloat16 if x is o else gl.float8e4nv
        layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
        descs.append(TensorDescriptor.from_tensor(x, list(block), layout))
    scales = [x.contiguous() for x in (q_scale, k_scale, v_scale)]
    # --8<-- [start:turns]
    consumers = 3 if head_dim <= 128 else 2
    blocks = triton.cdiv(seq_q, 64 * consumers)
    items = batch * heads * triton.cdiv(blocks, 2 if causal else 1)
    gpu = torch.cuda.get_device_properties(q.device)
    programs = min(items, gpu.multi_processor_count)
    turns = triton.cdiv(items, programs) * (2 if causal else 1)
    # --8<-- [end:turns]
    with torch.cuda.device_of(q):
        attention_kernel[(programs,)](
            *descs, lse, *scales, scale * math.log2(math.e), turns, PLACES=2,
            CONSUMERS=consumers, CAUSAL=causal, num_warps=4,
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        # --8<-- [start:call]
        q, k, v = (torch.randn(2, 4, 160, 80, device="cuda") for _ in range(3))
        (q8, q_scale), (k8, k_scale), (v8, v_scale) = map(quantise, (q, k, v))
        o, lse = attention(q8, k8, v8.mT.contiguous(), q_scale, k_scale, v_scale)
        # --8<-- [end:call]
        sdpa = torch.nn.functional.scaled_dot_product_attention
        error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
        print(f"cuda: largest error {error:.1e}, that of rounded inputs included")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
