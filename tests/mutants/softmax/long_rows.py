"""Bugs that the tests of snippets/softmax/long_rows.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import LAUNCH_MUTANTS

MUTANTS = [
    *LAUNCH_MUTANTS,
    Mutant(
        "if x.dtype == torch.float64:",
        "if False:",
        "float64 pairs squeezed into a word",
        may_not_compile=True,
    ),
    Mutant('other=float("-inf")', "other=0.0", "a tail load of 0", 3),
    Mutant("x_ptr += row * stride_xr", "x_ptr += row * cols", "x taken contiguous"),
    Mutant("first * stride_xc", "first", "the chunk's column stride ignored"),
    Mutant("(start + offs) * stride_xc", "(start + offs)", "x's columns", 3),
    Mutant("row * stride_yr", "row * stride_xr", "y written with x's row stride"),
    Mutant("first * stride_yc", "first * stride_xc", "y's chunks with x's stride"),
    Mutant("offs) * stride_yc, y, mask", "offs) * stride_xc, y, mask", "y's columns"),
    Mutant("stride_yc, y, mask,", "stride_yc, y, None,", "a store without a mask"),
    Mutant("(ticket // chunks).to(tl.int64)", "(ticket // chunks)", "32 bits"),
    Mutant("start + offs < size", "start + offs < CHUNK_COLS", "no end of row", 3),
    Mutant("start + offs < size", "start + offs <= size", "a column too many", 3),
    Mutant(
        'shift = tl.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = m_i",
        "no guard for a chunk of -inf",
    ),
    Mutant("x.to(COMPUTE) - shift", "x.to(COMPUTE)", "a sum without the maximum"),
    Mutant("tile_m = tl.maximum(tile_m, x", "tile_m = (x", "the last tile's maximum"),
    Mutant("tile_l += tl.exp2", "tile_l = tl.exp2", "the last tile's sum"),
    Mutant(
        "word_ptr + ticket, to_word(m_i, l_i)",
        "word_ptr + ticket, to_word(m_i, m_i)",
        "m published twice",
    ),
    Mutant("row * chunks + offs_k", "offs_k", "the words of the first row"),
    Mutant(
        'm_k = tl.where(offs_k < chunks, m_k, float("-inf"))',
        "pass",
        "lanes without a chunk take part with a maximum of 0",
    ),
    Mutant(
        "words_ptr, offs_k < chunks, other=0, volatile=True",
        "words_ptr, volatile=True",
        "the words of the next row read",
    ),
    Mutant("l_k * tl.exp2((m_k - m_i)", "l_k * tl.exp2((m_i - m_k)", "wrong way"),
    Mutant(
        "tl.sum(l_k * tl.exp2((m_k - m_i) * 1.4426950408889634), axis=0)",
        "tl.sum(l_k, axis=0)",
        "sums merged without rescaling",
    ),
    Mutant("(x.to(COMPUTE) - m_i)", "(x.to(COMPUTE) - shift)", "own chunk's maximum"),
    Mutant("* scale", "", "no division"),
    Mutant("chunk_cols *= 2", "chunk_cols //= 2", "chunks halved, not doubled"),
    Mutant("if chunks == 1:", "if chunks == 2:", "few threads for a whole row"),
    Mutant("if BLOCK_CHUNKS > 1:", "if BLOCK_CHUNKS > 2:", "two chunks do not meet"),
    Mutant("missing = True", "missing = False", "nobody waits for the others"),
]
