"""Softmax with its gradient: the backward pass is one fused kernel."""

import torch
import triton
import triton.language as tl

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
    x_ptr, y_ptr, stride_xr, stride_xc, cols: tl.int64,
    COMPUTE: tl.constexpr, BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xr
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    m_i = tl.full((), float("-inf"), COMPUTE)
    # One addition a tile: of many tiles, float32 would lose what it rounds each time.
    l_i = tl.full((), 0.0, tl.float64)
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(x_ptr + (start + offs) * stride_xc, mask, other=float("-inf"))
        m_new = tl.maximum(m_i, tl.max(x.to(COMPUTE), axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l_i = l_i * tl.exp(m_i - shift)
        l_i = l_i + tl.sum(tl.exp(x.to(COMPUTE) - shift), axis=0)
        m_i = m_new
    denominator = l_i.to(COMPUTE)
    for start in range(0, cols, BLOCK_COLS):
        mask = start + offs < cols
        x = tl.load(x_ptr + (start + offs) * stride_xc, mask, other=float("-inf"))
        y = tl.exp(x.to(COMPUTE) - m_i) / denominator
        tl.store(y_ptr + row * cols + start + offs, y, mask)


# --8<-- [end:forward]
# --8<-- [start:backward]
@triton.jit
def backward_kernel(
    y_ptr, dy_ptr, dx_ptr, word_ptr, stride_dyr, stride_dyc,
    rows, cols: tl.int64, chunks, COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr, BLOCK_CHUNKS: tl.constexpr,
    TILES: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:dot]
    ticket = tl.program_id(0)
    if BLOCK_CHUNKS > 1:
        # Chunks are handed out in the order in which programs start.
        ticket_ptr = word_ptr + tl.num_programs(0)
        # --8<-- [line:ticket]
        ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed").to(tl.int32)
    row = (ticket // chunks).to(tl.int64) * BLOCK_ROWS
    first = (ticket % chunks).to(tl.int64) * TILES * BLOCK_COLS
    offs_r = (row + tl.arange(0, BLOCK_ROWS))[:, None]  # [BLOCK_ROWS, 1]
    offs_c = (first + tl.arange(0, BLOCK_COLS))[None, :]  # [1, BLOCK_COLS]
    y_ptr += offs_r * cols
    dy_ptr += offs_r * stride_dyr
    dx_ptr += offs_r * cols
    products = tl.zeros((BLOCK_ROWS, BLOCK_COLS), COMPUTE)
    kept = ()
    # The first tiles stay in registers, and leave the L1 cache to the others.
    ONCE: tl.constexpr = KEPT if TILES > 1 else 0
    for tile in tl.static_range(TILES):
        offs = offs_c + tile * BLOCK_COLS
        mask = (offs_r < rows) & (offs < cols)
        y = tl.load(
            y_ptr + offs, mask, other=0.0,
            eviction_policy="evict_first" if tile < ONCE else "evict_last",
        )  # fmt: skip
        dy = tl.load(
            dy_ptr + offs * stride_dyc, mask, other=0.0,
            eviction_policy="evict_first" if tile < ONCE else "evict_last",
        )  # fmt: skip
        products += y.to(COMPUTE) * dy.to(COMPUTE)
        if tile < KEPT:
            kept += (y, dy)
    # --8<-- [line:delta]
    delta = tl.sum(products, axis=1, keep_dims=True)
    # --8<-- [end:dot]

    # --8<-- [start:meet]
    if BLOCK_CHUNKS > 1:
        # The word is the message, and 0 means "not there yet". So the bits are turned
        # round: of all numbers, only one of the many NaN becomes 0. -1 is a sum of 0.
        word = ~tl.sum(delta).to(tl.float64).to(tl.int64, bitcast=True)
        # --8<-- [line:publish]
        tl.atomic_xchg(word_ptr + ticket, tl.where(word == 0, 1, word), sem="relaxed")
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
            words = tl.load(words_ptr, offs_k < chunks, other=-1, volatile=True)
            missing = tl.max((words == 0).to(tl.int32), axis=0) > 0
        # All are there, but not every thread has seen them: so all look again.
        words = tl.load(words_ptr, offs_k < chunks, other=-1, volatile=True)
        # --8<-- [line:merge]
        delta = tl.sum((~words).to(tl.float64, bitcast=True), axis=0).to(COMPUTE)
    # --8<-- [end:meet]

    for tile in tl.static_range(TILES):
        offs = offs_c + tile * BLOCK_COLS
        mask = (offs_r < rows) & (offs < cols)
        if tile < KEPT:
            y, dy = kept[2 * tile], kept[2 * tile + 1]
        else:
            y = tl.load(y_ptr + offs, mask, other=0.0)
            dy = tl.load(dy_ptr + offs * stride_dyc, mask, other=0.0)
        # --8<-- [line:dx]
        dx = y.to(COMPUTE) * (dy.to(COMPUTE) - delta)
        tl.store(dx_ptr + offs, dx, mask, cache_modifier=".cs")


# --8<-- [end:backward]
# --8<-- [start:function]
class Softmax(torch.autograd.Function):
    """Saves y: the gradient needs neither x nor the row maximum."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, chunk_cols: int) -> torch.Tensor:
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        ctx.chunk_cols = chunk_cols
        ctx.save_for_backward(y)
        with torch.cuda.device_of(x):
            forward_kernel[(x.shape[0],)](
                x, y, *x.stride(), x.shape[1],
                COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
                BLOCK_COLS=chunk_cols,
                num_warps=max(1, min(16, chunk_cols // 256)),
            )  # fmt: skip
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy: torch.Tensor) -> tuple[torch.Tensor, None]:
        (y,) = ctx.saved_tensors
        (rows, cols), chunk_cols = y.shape, ctx.chunk_cols
        dx = torch.empty_like(y)
        # --8<-- [start:tile]
        if cols <= chunk_cols:
            # At least 4 KiB of y, and as many of dy; a thread has 32 bytes of each.
            row_bytes = chunk_cols * y.element_size()
            block_rows, tiles, kept = max(1, 4096 // row_bytes), 1, 1
            num_warps = max(1, min(16, block_rows * row_bytes // 1024))
        else:
            tiles, kept = (4, 1) if y.element_size() == 2 else (8, 4)
            block_rows, tiles, num_warps = 1, min(tiles, chunk_cols), 4
            # Programs that wait for each other must all fit on the GPU at a time.
            gpu = torch.cuda.get_device_properties(y.device)
            while triton.cdiv(cols, chunk_cols) > gpu.multi_processor_count:
                chunk_cols, tiles = chunk_cols * 2, tiles * 2
        chunks = max(1, triton.cdiv(cols, chunk_cols))
        # --8<-- [end:tile]
        programs = triton.cdiv(rows, block_rows) * chunks
        # The last word counts the tickets.
        words = torch.zeros(programs + 1, dtype=torch.int64, device=y.device)
        with torch.cuda.device_of(y):
            backward_kernel[(programs,)](
                y, dy, dx, words, *dy.stride(), rows, cols, chunks,
                COMPUTE=tl.float64 if y.dtype == torch.float64 else tl.float32,
                BLOCK_ROWS=block_rows, BLOCK_COLS=chunk_cols // tiles,
                BLOCK_CHUNKS=triton.next_power_of_2(chunks),
                TILES=tiles, KEPT=kept, num_warps=num_warps,
            )  # fmt: skip
        return dx, None


# --8<-- [end:function]
# --8<-- [start:launch]
def softmax(x: torch.Tensor, *, chunk_cols: int | None = None) -> torch.Tensor:
    """Softmax over the last dimension; differentiable once.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        chunk_cols: columns per program of the backward pass, a power of two; if None,
            the whole row up to 16384, and 8192 of longer ones. Doubled until a row has
            no more chunks than the GPU has multiprocessors.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64. The gradient may have any strides, 0 included.

    Raises ValueError: x is none of the above.
    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
    algorithm 3; Dao et al., "FlashAttention", 2022, appendix B.2 (the gradient).
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; it must be one of {DTYPES}")
    whole = triton.next_power_of_2(max(1, x.shape[1]))
    return Softmax.apply(x, chunk_cols or (whole if whole <= 16384 else 8192))


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(16, 3000, device=device, requires_grad=True)
    dy = torch.randn(16, 3000, device=device)
    (dx,) = torch.autograd.grad(softmax(x), x, dy)
    expected = reference_backward(torch.softmax(x.double(), dim=-1), dy.double())
    print(f"{device}: largest error {(dx - expected).abs().max().item():.1e}")
# --8<-- [end:demo]
