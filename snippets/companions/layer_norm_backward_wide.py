"""The gradients of layer norm for rows of any width: programs of a row meet."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


# --8<-- [start:word]
@triton.jit
def to_word(a, b):
    """Two float32 in one word of 64 bits, which are turned round: it is never 0."""
    a, b = a.to(tl.int32, bitcast=True), b.to(tl.int32, bitcast=True)
    word = ~((a.to(tl.int64) << 32) | (b.to(tl.int64) & 0xFFFFFFFF))
    # Only two NaN of all bits 1 become 0: they get other bits.
    return tl.where(word == 0, 1, word)


@triton.jit
def from_word(word):
    """The two of a word."""
    a, b = (~word >> 32).to(tl.int32), (~word).to(tl.int32)
    return a.to(tl.float32, bitcast=True), b.to(tl.float32, bitcast=True)


# --8<-- [end:word]
# --8<-- [start:ask]
@triton.jit
def ask(given, row, CENTRED: tl.constexpr, CACHE: tl.constexpr):
    """What a program needs of a row; zeros if there is no such row."""
    dy_ptrs, x_ptrs, mean_ptr, rstd_ptr, stride_dyr, stride_xr, rows, mask = given
    there = (row >= 0) & (row < rows)
    inside = mask & there
    dy = tl.load(dy_ptrs + row * stride_dyr, inside, other=0.0, eviction_policy=CACHE)
    x = tl.load(x_ptrs + row * stride_xr, inside, other=0.0, eviction_policy=CACHE)
    mean = tl.load(mean_ptr + row, there & CENTRED, other=0.0)  # RMS norm: none
    rstd = tl.load(rstd_ptr + row, there, other=0.0)
    return dy, x, mean, rstd


# --8<-- [end:ask]
# --8<-- [start:kernel]
@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, partial_ptr, word_ptr,
    stride_dyr, stride_dyc, stride_xr, stride_xc, rows: tl.int64, cols: tl.int64,
    chunks, CENTRED: tl.constexpr, FULL: tl.constexpr,
    BLOCK_COLS: tl.constexpr, BLOCK_CHUNKS: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:team]
    # Chunks are handed out in the order in which programs start.
    # --8<-- [line:ticket]
    ticket = tl.atomic_add(word_ptr + rows * chunks, 1, sem="relaxed")
    team, chunk = ticket // chunks, ticket % chunks
    teams = tl.num_programs(0) // chunks
    offs = chunk * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = (offs < cols) | FULL  # FULL: chunks fill a row, no lane is past its end
    dy_ptrs, x_ptrs = dy_ptr + offs * stride_dyc, x_ptr + offs * stride_xc
    w = tl.load(w_ptr + offs, mask, other=0.0).to(tl.float32)
    dw, db = tl.zeros_like(w), tl.zeros_like(w)
    offs_k = tl.arange(0, BLOCK_CHUNKS)
    # --8<-- [end:team]
    # --8<-- [start:turn]
    given = (dy_ptrs, x_ptrs, mean_ptr, rstd_ptr, stride_dyr, stride_xr, rows, mask)
    dy, x, mean, rstd = ask(given, tl.cast(team, tl.int64), CENTRED, "evict_last")
    for each in range(team, rows + teams, teams):
        row = tl.cast(each, tl.int64)
        # The team has published the sums of the row before in the turn before.
        prev = row - teams
        words_ptrs = word_ptr + prev * chunks + offs_k
        mask_k = (offs_k < chunks) & (prev >= 0)
        # --8<-- [line:look]
        words = tl.load(words_ptrs, mask_k, other=-1, volatile=True)
        # --8<-- [line:next]
        next_row = ask(given, row + teams, CENTRED, "evict_last")
        # --8<-- [line:again]
        dy_prev, x_prev, mean_prev, rstd_prev = ask(given, prev, CENTRED, "evict_first")
        # --8<-- [end:turn]
        # --8<-- [start:publish]
        g, x_hat = dy.to(tl.float32) * w, (x.to(tl.float32) - mean) * rstd
        # --8<-- [line:sums]
        word = to_word(*tl.split(tl.sum(tl.join(g, g * x_hat), axis=0)))
        # The value is the message: nothing else has to arrive before it. It was 0.
        # --8<-- [line:publish]
        tl.atomic_or(word_ptr + row * chunks + chunk, word, row < rows, sem="relaxed")
        # --8<-- [line:columns]
        dw += dy.to(tl.float32) * x_hat
        db += dy.to(tl.float32)
        # --8<-- [end:publish]
        # --8<-- [start:meet]
        # --8<-- [line:wait]
        while tl.max((words == 0).to(tl.int32), axis=0) > 0:
            words = tl.load(words_ptrs, words == 0, other=words, volatile=True)
        # All are there, but not every thread has seen them: who has not looks again.
        words = tl.load(words_ptrs, words == 0, other=words, volatile=True)
        # --8<-- [line:means]
        mean_g, mean_gx = tl.split(tl.sum(tl.join(*from_word(words)), axis=0) / cols)
        g = dy_prev.to(tl.float32) * w
        x_hat = (x_prev.to(tl.float32) - mean_prev) * rstd_prev
        # --8<-- [line:dx]
        dx = rstd_prev * (g - (mean_g if CENTRED else 0.0) - x_hat * mean_gx)
        mask_dx = mask & (prev >= 0)
        tl.store(dx_ptr + prev * cols + offs, dx, mask_dx, cache_modifier=".cs")
        # --8<-- [end:meet]
        dy, x, mean, rstd = next_row
    # --8<-- [start:partial]
    # One row of dw and one of db for this team: nobody else writes these columns.
    tl.store(partial_ptr + team * cols + offs, dw, mask)
    tl.store(partial_ptr + (teams + team) * cols + offs, db, mask)
    # --8<-- [end:partial]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
    mean: torch.Tensor, rstd: torch.Tensor,
) -> None:  # fmt: skip
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    for name, given, shape, dtypes in (
        ("x", x, x.shape, DTYPES),
        ("dy", dy, x.shape, (x.dtype,)),
        ("weight", weight, x.shape[1:], DTYPES),
        ("rstd", rstd, x.shape[:1], (torch.float32,)),
        ("mean", mean, x.shape[:1], (torch.float32,)),
    ):
        if given.shape != shape:
            is_shape = f"{name} has shape {list(given.shape)}"
            raise ValueError(f"{is_shape}; it must be {list(shape)}, by that of x")
        if given.dtype not in dtypes:
            raise ValueError(f"{name} is {given.dtype}; it must be one of {dtypes}")
        if given.device != x.device:
            on = f"{name} is on {given.device}"
            raise ValueError(f"{on}; it must be on {x.device}, as x")
        if torch.is_grad_enabled() and given.requires_grad:
            raise ValueError(f"{name} requires a gradient, which is lost: detach it")


# --8<-- [end:checks]
# --8<-- [start:launch]
def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor | None,
    rstd: torch.Tensor, *,
    programs: int | None = None, chunk_cols: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of y = (x - mean) * rstd * weight + bias.

    Args:
        dy: [rows, cols], the gradient of y; dtype of x, any strides, 0 included.
        x: [rows, cols], float16, bfloat16 or float32, any strides.
        weight: [cols], float16, bfloat16 or float32.
        mean, rstd: [rows], float32: of each row of x the mean and
            1 / sqrt(variance + eps), which the forward pass kept. If mean is None,
            these are the gradients of RMS norm, y = x * rstd * weight + bias.
        programs: at least 1; if None, 8 for each multiprocessor, or 12 in float32.
            Another number rounds dw and db in another way.
        chunk_cols: columns of a program, a power of two; if None, 2 KiB of a row.
            Doubled until a row has no more chunks than the GPU has multiprocessors.

    Returns dx: [rows, cols], dtype of x, contiguous; dw, db: [cols], dtype of weight.
        All sums are float32, in an order that depends on the arguments alone.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Ba, Kiros and Hinton, "Layer normalization", 2016, section 3.
    """
    mean, centred = (rstd, False) if mean is None else (mean, True)  # None: not read
    check(dy, x, weight, mean, rstd)
    if programs is not None and programs < 1:
        raise ValueError(f"programs is {programs}; it must be at least 1")
    if programs is None and not x.is_cuda:
        raise ValueError(f"programs is None; it must be given, as {x.device} is no GPU")
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if dx.numel() == 0:
        return dx, torch.zeros_like(weight), torch.zeros_like(weight)
    # --8<-- [start:tile]
    chunk_cols = chunk_cols or 2048 // x.element_size()
    # A multiprocessor has 65536 registers: 12 warps may have 168 a thread, 8 the limit.
    per_multiprocessor, maxnreg = (12, 168) if x.dtype == torch.float32 else (8, 255)
    if cols > chunk_cols or programs is None:
        gpu = torch.cuda.get_device_properties(x.device)
        programs = programs or per_multiprocessor * gpu.multi_processor_count
        # Programs that wait for each other must all fit on the GPU at a time.
        while triton.cdiv(cols, chunk_cols) > gpu.multi_processor_count:
            chunk_cols *= 2
    chunks = triton.cdiv(cols, chunk_cols)
    teams = max(1, min(programs // chunks, rows))
    # --8<-- [end:tile]
    partial = torch.empty((2, teams, cols), dtype=torch.float32, device=x.device)
    # The last word counts the tickets.
    words = torch.zeros(rows * chunks + 1, dtype=torch.int64, device=x.device)
    with torch.cuda.device_of(dy):
        backward_kernel[(teams * chunks,)](
            dy, x, weight.contiguous(), mean.contiguous(), rstd.contiguous(),
            dx, partial, words, *dy.stride(), *x.stride(), rows, cols, chunks,
            CENTRED=centred, FULL=cols % chunk_cols == 0, maxnreg=maxnreg,
            BLOCK_COLS=chunk_cols, BLOCK_CHUNKS=triton.next_power_of_2(chunks),
            num_warps=max(1, min(8, chunk_cols * x.element_size() // 2048)),
        )  # fmt: skip
    return dx, *partial.sum(dim=1).to(weight.dtype)


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cols, programs = (20000, None) if device == "cuda" else (1000, 4)
    x = torch.randn(300, cols, device=device).half()
    dy, weight = torch.randn_like(x), torch.randn(cols, device=device).half()
    mean = x.float().mean(dim=1)
    rstd = (x.float().var(dim=1, correction=0) + 1e-5).rsqrt()
    found = layer_norm_backward(dy, x, weight, mean, rstd, programs=programs)
    inputs = [t.double().requires_grad_() for t in (x, weight, weight)]
    y = torch.nn.functional.layer_norm(inputs[0], (cols,), *inputs[1:])
    expected = torch.autograd.grad(y, inputs, dy.double())
    errors = [(a - b).abs().max().item() for a, b in zip(found, expected, strict=True)]
    print(f"{device}: largest errors {', '.join(f'{e:.1e}' for e in errors)}")
# --8<-- [end:demo]
