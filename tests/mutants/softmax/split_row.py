"""Bugs that the tests of snippets/softmax/split_row.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import ONLINE_MUTANTS, STORE_MUTANTS

EVERY, MASK = "range(first, last, BLOCK_COLS)", "mask = start + offs < last"

ROW, MINUS_INF = "row * stride_xr", '            other=float("-inf"),\n'

MUTANTS = [
    *STORE_MUTANTS,
    *ONLINE_MUTANTS,
    Mutant(MINUS_INF, "", "a tail load without other", 2),
    Mutant(MINUS_INF, "other=0.0,\n", "a tail load of 0", 2),
    Mutant(ROW, "row * cols", "x read as if it were contiguous", 2),
    Mutant(" * stride_xc", "", "the column stride of x ignored", 2),
    Mutant("tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "32-bit rows", 2),
    Mutant(EVERY, "range(first, first + BLOCK_COLS, BLOCK_COLS)", "one tile only", 2),
    Mutant(MASK, "mask = start + offs < cols", "a tile that enters the next chunk", 2),
    Mutant(
        "tl.minimum(first + chunk_cols, cols)",
        "first + chunk_cols",
        "a last chunk that ends past the row",
        2,
    ),
    Mutant("triton.cdiv(cols, chunks)", "cols // chunks", "the last columns dropped"),
    Mutant(
        "m_new = tl.maximum(m_i, tl.max(x, axis=0))",
        "m_new = tl.max(x, axis=0)",
        "the maximum of the last tile only",
    ),
    Mutant("m_ptr + row * chunks + chunk,", "m_ptr + row + chunk,", "rows share m"),
    Mutant("l_ptr + row * chunks + chunk,", "l_ptr + row + chunk,", "rows share l"),
    Mutant("offs_k < chunks, other=0.0", "offs_k < 8, other=0.0", "a wrong mask of l"),
    Mutant(
        'offs_k < chunks, other=float("-inf")',
        "offs_k < chunks, other=0.0",
        "missing chunks counted as a maximum of 0",
    ),
    Mutant("l_k * tl.exp(m_k - m_i)", "l_k", "the parts are not rescaled"),
    Mutant("l_k * tl.exp(m_k - m_i)", "tl.exp(m_k - m_i)", "the parts' sums dropped"),
    Mutant(
        "m_i = tl.max(m_k, axis=0)", "m_i = tl.min(m_k, axis=0)", "the least maximum"
    ),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    Mutant(
        "torch.float64 if double else torch.float32",
        "x.dtype",
        "partial results in the dtype of x",
    ),
    Mutant("tl.float64 if double else tl.float32", "tl.float32", "float64 in float32"),
    Mutant(
        "dtype=x.dtype, device=x.device",
        "dtype=dtype, device=x.device",
        "a y of another dtype",
    ),
]
