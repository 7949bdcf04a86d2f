"""Bugs that the tests of snippets/softmax/whole_row.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import LAUNCH_MUTANTS

MUTANTS = [
    *LAUNCH_MUTANTS,
    Mutant('other=float("-inf"),', "", "a tail load without other"),
    Mutant('other=float("-inf"),', "other=0.0,", "a tail load of 0"),
    Mutant('other=float("-inf"),', "other=-1e6,", "a mask that is not -inf"),
    Mutant("offs_r * stride_xr", "offs_r * cols", "x read as if contiguous"),
    Mutant("offs_r * stride_xr", "offs_r * stride_yr", "x read with y's stride"),
    Mutant("offs_c * stride_xc", "offs_c", "the column stride of x ignored"),
    Mutant("offs_r * stride_yr", "offs_r * stride_xr", "y written with x's stride"),
    Mutant("offs_c * stride_yc, y", "offs_c * stride_xc, y", "y with x's columns"),
    Mutant("stride_yc, y, mask)", "stride_yc, y)", "a store without a mask"),
    Mutant(".to(tl.int64) * BLOCK_ROWS", " * BLOCK_ROWS", "row offsets in 32 bits"),
    Mutant(
        "tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "tl.arange(0, BLOCK_COLS)",
        "column offsets in 32 bits",
    ),
    Mutant("offs_r < rows", "offs_r <= rows", "a row too many"),
    Mutant("offs_c < cols", "offs_c <= cols", "a column too many"),
    Mutant("(x - m_i) * 1.4426950408889634", "x - m_i", "powers of 2, not of e"),
    Mutant("tl.exp2((x - m_i)", "tl.exp2(x", "no maximum subtracted"),
    Mutant("tl.max(x, axis=1, keep_dims=True)", "tl.max(x)", "one maximum for all"),
    Mutant(
        "tl.sum(numerator, axis=1, keep_dims=True)",
        "tl.sum(numerator)",
        "one sum for all rows of the tile",
    ),
    Mutant("numerator * (1.0 / l_i)", "numerator", "no division"),
    Mutant("triton.cdiv(rows, block_rows)", "rows // block_rows", "last rows lost"),
    Mutant("num_warps = min(32, ", "num_warps = min(64, ", "64 warps"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65535", "the longest row refused"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65537", "a row too long accepted"),
]
