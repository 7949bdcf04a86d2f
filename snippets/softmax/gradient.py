"""Softmax with its gradient: the backward pass is one fused kernel."""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:reference]
def reference_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """dx = y * (dy - delta); delta is the product of the rows of y and dy."""
    delta = (y * dy).sum(dim=-1, keepdim=True)
    return y * (dy - delta)


# --8<-- [end:reference]


# --8<-- [start:forward]
@triton.jit
def forward_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    m_i = tl.full((), float("-inf"), COMPUTE)
    l_i = tl.full((), 0.0, COMPUTE)
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l_i = l_i * tl.exp(m_i - shift)
        l_i = l_i + tl.sum(tl.exp(x - shift), axis=0)
        m_i = m_new
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        y = tl.exp(x - m_i) / l_i
        tl.store(y_ptr + row * stride_yr + (start + offs) * stride_yc, y, mask)


# --8<-- [end:forward]


# --8<-- [start:word]
@triton.jit
def to_word(delta):
    """The sum of a chunk in a word of 64 bits; it is never 0."""
    word = ~delta.to(tl.float64).to(tl.int64, bitcast=True)
    # One of the many NaN has bits that are all 1: any other will do for it.
    return tl.where(word == 0, 1, word)


@triton.jit
def from_word(word):
    """The sum of a chunk, in float64; a word of -1 is the sum 0."""
    return (~word).to(tl.float64, bitcast=True)


# --8<-- [end:word]


# --8<-- [start:backward]
@triton.jit
def backward_kernel(
    y_ptr,
    dy_ptr,
    dx_ptr,
    word_ptr,
    ticket_ptr,
    stride_yr,
    stride_dyr,
    stride_dyc,
    stride_dxr,
    rows,
    cols: tl.int64,
    chunks,
    COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
    CHUNK_COLS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [start:place]
    ticket = tl.program_id(0)
    if BLOCK_CHUNKS > 1:
        # Chunks are handed out in the order in which programs start.
        ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed").to(tl.int32)
    row = (ticket // chunks).to(tl.int64) * BLOCK_ROWS
    first = (ticket % chunks).to(tl.int64) * CHUNK_COLS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = tl.arange(0, BLOCK_COLS)[None, :]  # [1, BLOCK_COLS]
    mask_r = offs_r < rows
    y_ptr += offs_r * stride_yr + first
    dy_ptr += offs_r * stride_dyr + first * stride_dyc
    dx_ptr += offs_r * stride_dxr + first
    size = tl.minimum(cols - first, CHUNK_COLS)
    # --8<-- [end:place]

    # --8<-- [start:dot]
    # The last tile of the chunk, most often its only one, stays in registers.
    last = (size - 1) // BLOCK_COLS * BLOCK_COLS
    mask = mask_r & (last + offs_c < size)
    y_last = tl.load(y_ptr + last + offs_c, mask, other=0.0)
    dy_last = tl.load(dy_ptr + (last + offs_c) * stride_dyc, mask, other=0.0)
    # --8<-- [line:delta]
    delta = tl.sum(y_last.to(COMPUTE) * dy_last.to(COMPUTE), axis=1, keep_dims=True)
    for start in range(0, last, BLOCK_COLS):
        # --8<-- [line:keep]
        y = tl.load(
            y_ptr + start + offs_c, mask_r, other=0.0, eviction_policy="evict_last"
        ).to(COMPUTE)
        dy = tl.load(
            dy_ptr + (start + offs_c) * stride_dyc,
            mask_r,
            other=0.0,
            eviction_policy="evict_last",
        ).to(COMPUTE)
        delta += tl.sum(y * dy, axis=1, keep_dims=True)
    # --8<-- [end:dot]

    # --8<-- [start:meet]
    if BLOCK_CHUNKS > 1:
        # --8<-- [line:publish]
        tl.atomic_xchg(word_ptr + ticket, to_word(tl.sum(delta)), sem="relaxed")
        offs_k = tl.arange(0, BLOCK_CHUNKS)
        words_ptr = word_ptr + row * chunks + offs_k
        missing = True
        # --8<-- [line:wait]
        while missing:
            words = tl.load(words_ptr, offs_k < chunks, other=-1, volatile=True)
            missing = tl.max((words == 0).to(tl.int32), axis=0) > 0
        # One thread has seen all words: now every thread reads them.
        words = tl.load(words_ptr, offs_k < chunks, other=-1, volatile=True)
        # --8<-- [line:merge]
        delta = tl.sum(from_word(words), axis=0).to(COMPUTE)
    # --8<-- [end:meet]

    # --8<-- [start:output]
    # --8<-- [line:dx]
    dx = y_last.to(COMPUTE) * (dy_last.to(COMPUTE) - delta)
    # --8<-- [line:stream]
    tl.store(dx_ptr + last + offs_c, dx, mask, cache_modifier=".cs")
    for start in range(0, last, BLOCK_COLS):
        # --8<-- [line:evict]
        y = tl.load(
            y_ptr + start + offs_c, mask_r, other=0.0, eviction_policy="evict_first"
        ).to(COMPUTE)
        dy = tl.load(
            dy_ptr + (start + offs_c) * stride_dyc,
            mask_r,
            other=0.0,
            eviction_policy="evict_first",
        ).to(COMPUTE)
        dx = y * (dy - delta)
        tl.store(dx_ptr + start + offs_c, dx, mask_r, cache_modifier=".cs")
    # --8<-- [end:output]


# --8<-- [end:backward]


# --8<-- [start:tile]
def tile(cols: int, itemsize: int) -> tuple[int, int, int]:
    """What a program takes: (rows of a tile, columns of a tile, warps).

    A row of up to 16384 columns is one tile, and short rows share one: at least 4 KiB
    of y, and as many of dy. A thread takes 32 bytes of each, until a program has 16
    warps.
    """
    block_cols = triton.next_power_of_2(cols)
    if block_cols > 16384:
        return 1, 8192, 8
    block_rows = max(1, 4096 // (block_cols * itemsize))
    return block_rows, block_cols, min(16, block_rows * block_cols * itemsize // 1024)


# --8<-- [end:tile]


# --8<-- [start:function]
class Softmax(torch.autograd.Function):
    """Saves y: the gradient needs neither x nor the row maximum."""

    @staticmethod
    def forward(ctx, x, chunk_cols, block_cols):
        rows, cols = x.shape
        y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
        ctx.sizes = chunk_cols, block_cols
        ctx.save_for_backward(y)
        if y.numel() == 0:
            return y
        block_cols = block_cols or min(16384, triton.next_power_of_2(cols))
        with torch.cuda.device_of(x):
            forward_kernel[(rows,)](
                *(x, y, *x.stride(), *y.stride(), cols),
                COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
                BLOCK_COLS=block_cols,
                num_warps=max(1, min(16, block_cols // 256)),
            )
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        rows, cols = y.shape
        dx = torch.empty((rows, cols), dtype=y.dtype, device=y.device)
        if dx.numel() == 0:
            return dx, None, None
        chunk_cols, wanted = ctx.sizes
        block_rows, block_cols, num_warps = tile(wanted or cols, y.element_size())
        chunk_cols = chunk_cols or block_cols
        if cols > chunk_cols:
            # Programs that wait for each other must all fit on the GPU at a time.
            gpu = torch.cuda.get_device_properties(y.device)
            while triton.cdiv(cols, chunk_cols) > gpu.multi_processor_count:
                chunk_cols *= 2
            block_rows = 1
        chunks = triton.cdiv(cols, chunk_cols)
        programs = triton.cdiv(rows, block_rows) * chunks
        words = torch.zeros(programs + 1, dtype=torch.int64, device=y.device)
        with torch.cuda.device_of(y):
            backward_kernel[(programs,)](
                *(y, dy, dx, words, words[programs:]),
                *(y.stride(0), *dy.stride(), dx.stride(0), rows, cols, chunks),
                COMPUTE=tl.float64 if y.dtype == torch.float64 else tl.float32,
                BLOCK_ROWS=block_rows,
                BLOCK_CHUNKS=triton.next_power_of_2(chunks),
                CHUNK_COLS=chunk_cols,
                BLOCK_COLS=min(block_cols, chunk_cols),
                num_warps=num_warps,
            )
        return dx, None, None


# --8<-- [end:function]


# --8<-- [start:launch]
def softmax(
    x: torch.Tensor, *, chunk_cols: int | None = None, block_cols: int | None = None
) -> torch.Tensor:
    """Softmax over the last dimension; differentiable once.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        chunk_cols: columns of a program of the backward kernel, a power of two; doubled
            until a row has no more chunks than the GPU has multiprocessors.
        block_cols: columns per tile, a power of two. By default both are as in `tile`.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64. The gradient may have any strides, 0 included.

    Raises:
        ValueError: x is not one of the above.

    Source: forward, Milakov and Gimelshein, "Online normalizer calculation for
    softmax", 2018, algorithm 3; backward, Dao et al., "FlashAttention", 2022,
    appendix B.2 (the gradient of softmax).
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    return Softmax.apply(x, chunk_cols, block_cols)


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(16, 3000, device=device, requires_grad=True)
    dy = torch.randn(16, 3000, device=device)
    (dx,) = torch.autograd.grad(softmax(x), x, dy)
    x64, dy64 = x.double(), dy.double()
    (expected,) = torch.autograd.grad(torch.softmax(x64, dim=-1), x64, dy64)
    print(f"{device}: largest error {(dx - expected).abs().max().item():.1e}")
# --8<-- [end:demo]
