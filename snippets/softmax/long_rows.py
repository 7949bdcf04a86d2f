"""Rows in the L1 cache: of one program, or of several that meet in one launch."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:word]
@triton.jit
def to_word(m_i, l_i):
    """The pair of a chunk in one word of 64 bits; it is never 0."""
    m_bits = m_i.to(tl.int32, bitcast=True).to(tl.int64)
    l_bits = l_i.to(tl.int32, bitcast=True).to(tl.int64)
    return (m_bits << 32) | (l_bits & 0xFFFFFFFF)


@triton.jit
def from_word(word):
    """The pair of a chunk: m and l."""
    m_i = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    l_i = word.to(tl.int32).to(tl.float32, bitcast=True)
    return m_i, l_i


# --8<-- [end:word]


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    word_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols: tl.int64,
    chunks,
    COMPUTE: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
    CHUNK_COLS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [start:ticket]
    # Chunks are handed out in the order in which programs start.
    ticket_ptr = word_ptr + tl.num_programs(0)
    # --8<-- [line:ticket]
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed").to(tl.int32)
    row = (ticket // chunks).to(tl.int64)
    first = (ticket % chunks).to(tl.int64) * CHUNK_COLS
    x_ptr += row * stride_xr + first * stride_xc
    y_ptr += row * stride_yr + first * stride_yc
    size = cols - first
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    # --8<-- [end:ticket]

    # --8<-- [start:partial]
    # The chunk comes from HBM here, and from the L1 cache in the loops that follow.
    tile_m = tl.full((BLOCK_COLS,), float("-inf"), COMPUTE)
    for start in tl.range(0, CHUNK_COLS, BLOCK_COLS, loop_unroll_factor=4):
        mask = start + offs < size
        x_ptrs = x_ptr + (start + offs) * stride_xc
        # --8<-- [line:keep]
        x = tl.load(x_ptrs, mask, other=float("-inf"), eviction_policy="evict_last")
        tile_m = tl.maximum(tile_m, x.to(COMPUTE))
    # --8<-- [line:max]
    m_i = tl.max(tile_m, axis=0)
    # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
    shift = tl.where(m_i == float("-inf"), 0.0, m_i)
    tile_l = tl.full((BLOCK_COLS,), 0.0, COMPUTE)
    for start in tl.range(0, CHUNK_COLS, BLOCK_COLS, loop_unroll_factor=4):
        mask = start + offs < size
        x = tl.load(x_ptr + (start + offs) * stride_xc, mask, other=float("-inf"))
        tile_l += tl.exp2((x.to(COMPUTE) - shift) * 1.4426950408889634)
    # --8<-- [line:sum]
    l_i = tl.sum(tile_l, axis=0)
    # --8<-- [end:partial]

    # --8<-- [start:meet]
    if BLOCK_CHUNKS > 1:
        # The value is the message: nothing else has to arrive before it.
        # --8<-- [line:publish]
        tl.atomic_xchg(word_ptr + ticket, to_word(m_i, l_i), sem="relaxed")
        offs_k = tl.arange(0, BLOCK_CHUNKS)
        words_ptr = word_ptr + row * chunks + offs_k
        if BLOCK_CHUNKS > 32:
            # Reading many words again and again costs bandwidth: first wait for the
            # word of the program that started last.
            word = tl.zeros((), tl.int64)
            while word == 0:
                word = tl.load(word_ptr + row * chunks + chunks - 1, volatile=True)
        missing = True
        # --8<-- [line:wait]
        while missing:
            words = tl.load(words_ptr, offs_k < chunks, other=1, volatile=True)
            missing = tl.max((words == 0).to(tl.int32), axis=0) > 0
        # All are there, but not every thread has seen them: so all look again.
        words = tl.load(words_ptr, offs_k < chunks, other=0, volatile=True)
        m_k, l_k = from_word(words)
        m_k = tl.where(offs_k < chunks, m_k, float("-inf"))
        # --8<-- [line:merge]
        m_i = tl.max(m_k, axis=0)
        l_i = tl.sum(l_k * tl.exp2((m_k - m_i) * 1.4426950408889634), axis=0)
    # --8<-- [end:meet]

    # --8<-- [start:output]
    scale = 1.0 / l_i
    for start in tl.range(0, CHUNK_COLS, BLOCK_COLS, loop_unroll_factor=4):
        mask = start + offs < size
        x_ptrs = x_ptr + (start + offs) * stride_xc
        # --8<-- [line:evict]
        x = tl.load(x_ptrs, mask, other=float("-inf"), eviction_policy="evict_first")
        # --8<-- [line:output]
        y = tl.exp2((x.to(COMPUTE) - m_i) * 1.4426950408889634) * scale
        # --8<-- [line:stream]
        tl.store(y_ptr + (start + offs) * stride_yc, y, mask, cache_modifier=".cs")
    # --8<-- [end:output]


# --8<-- [end:kernel]


# --8<-- [start:tile]
def tile(chunk_cols: int, chunks: int, itemsize: int) -> tuple[int, int, int]:
    """What a program takes: (BLOCK_COLS, num_warps, registers of a thread).

    A row that is one chunk gets a thread for 128 bytes of it. Where programs must meet,
    each has few threads, so that more of them fit.
    """
    if chunks == 1:
        num_warps = max(1, min(32, chunk_cols * itemsize // 4096))
        return min(4096, 256 * num_warps), num_warps, 56
    return 2048, 4, 96 if itemsize == 4 else 80


# --8<-- [end:tile]


# --8<-- [start:launch]
def softmax(
    x: torch.Tensor, *, chunk_cols: int | None = None, block_cols: int | None = None
) -> torch.Tensor:
    """Softmax over the last dimension, one or more programs per row, one launch.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        chunk_cols: columns per program, a power of two; by default the whole row up to
            128 KiB, and 32 KiB of longer ones. Doubled until a row has no more chunks
            than the GPU has multiprocessors: then all programs of a row fit on the GPU
            at a time, and none waits for ever.
        block_cols: columns per tile, a power of two; by default as in `tile`.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, section 3.1; tickets and waiting as in Merrill and Garland, "Single-pass
    parallel prefix scan with decoupled look-back", 2016, section 4.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    if torch.is_grad_enabled() and x.requires_grad:
        raise ValueError(
            "x requires a gradient, which this kernel would lose; "
            "use torch.no_grad() or detach"
        )

    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    itemsize = x.element_size()
    whole = triton.next_power_of_2(cols)
    if chunk_cols is None:
        chunk_cols = whole if whole * itemsize <= 131072 else 32768 // itemsize
    if x.dtype == torch.float64:
        chunk_cols = whole  # two float64 do not fit in a word
    if cols > chunk_cols:
        gpu = torch.cuda.get_device_properties(x.device)
        while triton.cdiv(cols, chunk_cols) > gpu.multi_processor_count:
            chunk_cols *= 2
    chunks = triton.cdiv(cols, chunk_cols)
    best_block, num_warps, registers = tile(chunk_cols, chunks, itemsize)
    # The last word counts the tickets.
    words = torch.zeros(rows * chunks + 1, dtype=torch.int64, device=x.device)
    with torch.cuda.device_of(x):
        softmax_kernel[(rows * chunks,)](
            *(x, y, words, *x.stride(), *y.stride(), cols, chunks),
            COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK_CHUNKS=triton.next_power_of_2(chunks),
            CHUNK_COLS=chunk_cols,
            BLOCK_COLS=min(block_cols or best_block, chunk_cols),
            num_warps=num_warps,
            maxnreg=registers,
        )
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(4, 20000, device=device)
    error = (softmax(x) - torch.softmax(x.double(), dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
