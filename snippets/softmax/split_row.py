"""One row split over several programs: a pair per chunk, then merge them."""

import torch
import triton
import triton.language as tl

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# --8<-- [start:partial]
@triton.jit
def partial_kernel(
    x_ptr,
    m_ptr,
    l_ptr,
    stride_xr,
    stride_xc,
    cols: tl.int64,
    chunk_cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1).to(tl.int64)
    chunks = tl.num_programs(1)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    first = chunk * chunk_cols
    last = tl.minimum(first + chunk_cols, cols)

    # The pair of this chunk; a chunk past the end keeps the identity (-inf, 0).
    m_i = tl.full((), float("-inf"), COMPUTE)
    l_i = tl.full((), 0.0, COMPUTE)
    for start in range(first, last, BLOCK_COLS):
        mask = start + offs < last
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # --8<-- [line:max]
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:rescale]
        l_i = l_i * tl.exp(m_i - shift)
        # --8<-- [line:sum]
        l_i = l_i + tl.sum(tl.exp(x - shift), axis=0)
        m_i = m_new
    tl.store(m_ptr + row * chunks + chunk, m_i)
    tl.store(l_ptr + row * chunks + chunk, l_i)


# --8<-- [end:partial]


# --8<-- [start:normalise]
@triton.jit
def normalise_kernel(
    x_ptr,
    y_ptr,
    m_ptr,
    l_ptr,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    cols: tl.int64,
    chunk_cols: tl.int64,
    COMPUTE: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1).to(tl.int64)
    chunks = tl.num_programs(1)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    first = chunk * chunk_cols
    last = tl.minimum(first + chunk_cols, cols)

    # Merge the pairs of all chunks of the row; an all -inf row gives NaN.
    offs_k = tl.arange(0, BLOCK_CHUNKS)
    m_k = tl.load(m_ptr + row * chunks + offs_k, offs_k < chunks, other=float("-inf"))
    l_k = tl.load(l_ptr + row * chunks + offs_k, offs_k < chunks, other=0.0)
    # --8<-- [line:merge_max]
    m_i = tl.max(m_k, axis=0)
    # --8<-- [line:merge_sum]
    l_i = tl.sum(l_k * tl.exp(m_k - m_i), axis=0)

    # Normalise this chunk.
    for start in range(first, last, BLOCK_COLS):
        mask = start + offs < last
        x = tl.load(
            x_ptr + row * stride_xr + (start + offs) * stride_xc,
            mask,
            other=float("-inf"),
        ).to(COMPUTE)
        # --8<-- [line:output]
        y = tl.exp(x - m_i) / l_i
        tl.store(y_ptr + row * stride_yr + (start + offs) * stride_yc, y, mask)


# --8<-- [end:normalise]


# --8<-- [start:launch]
def softmax(
    x: torch.Tensor, *, chunks: int = 8, block_cols: int = 1024
) -> torch.Tensor:
    """Softmax over the last dimension, `chunks` programs per row, two launches.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides.
        chunks: programs that share a row, from 1 to 1024.
        block_cols: columns per tile, a power of two.

    Returns:
        [rows, cols], dtype of x, contiguous. The arithmetic is float32, or float64
        for float64.

    Raises:
        ValueError: x is not one of the above, or requires a gradient.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, section 3.1 (parallel online normalizer).
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
    double = x.dtype == torch.float64
    dtype = torch.float64 if double else torch.float32
    m_i, l_i = torch.empty((2, rows, chunks), dtype=dtype, device=x.device)
    constants = {
        "COMPUTE": tl.float64 if double else tl.float32,
        "BLOCK_COLS": block_cols,
    }
    chunk_cols = triton.cdiv(cols, chunks)
    with torch.cuda.device_of(x):
        partial_kernel[(rows, chunks)](
            x,
            m_i,
            l_i,
            *x.stride(),
            cols,
            chunk_cols,
            **constants,
        )
        normalise_kernel[(rows, chunks)](
            x,
            y,
            m_i,
            l_i,
            *x.stride(),
            *y.stride(),
            cols,
            chunk_cols,
            BLOCK_CHUNKS=triton.next_power_of_2(chunks),
            **constants,
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
