"""Bugs that the tests of snippets/softmax/tiles.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import LAUNCH_MUTANTS, ONLINE_MUTANTS

EVERY, MASK = (
    "range(0, cols, BLOCK_COLS)",
    "mask = (offs_r < rows) & (start + offs_c < cols)",
)

ROW, MINUS_INF = "offs_r * stride_xr", 'other=float("-inf"),'

MUTANTS = [
    *LAUNCH_MUTANTS,
    *ONLINE_MUTANTS,
    Mutant(MINUS_INF, "", "a tail load without other", 2),
    Mutant(MINUS_INF, "other=0.0,", "a tail load of 0", 2),
    Mutant(MINUS_INF, "other=-1e6,", "a mask that is not -inf", 2),
    Mutant(ROW, "offs_r * cols", "x read as if it were contiguous", 2),
    Mutant(" * stride_xc", "", "the column stride of x ignored", 2),
    Mutant("tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "32-bit row offsets"),
    Mutant("offs_r * stride_yr", ROW, "y written with x's row stride"),
    Mutant(" * stride_yc", " * stride_xc", "y written with x's column stride"),
    Mutant("stride_yc, y, mask)", "stride_yc, y)", "a store without a mask"),
    Mutant(
        EVERY,
        "range(0, cols // BLOCK_COLS * BLOCK_COLS, BLOCK_COLS)",
        "the last columns dropped",
        2,
    ),
    Mutant(MASK, "mask = start + offs_c < cols", "no mask over the rows", 2),
    Mutant(MASK, "mask = offs_r < rows", "no mask over the columns", 2),
    Mutant(
        "triton.cdiv(rows, block_rows)", "rows // block_rows", "the last rows dropped"
    ),
    Mutant(
        "tl.maximum(m_i, tl.max(x, axis=1, keep_dims=True))",
        "tl.max(x, axis=1, keep_dims=True)",
        "the maximum of the last tile only",
    ),
    Mutant(
        "tl.max(x, axis=1, keep_dims=True)",
        "tl.max(tl.max(x, axis=1), axis=0)",
        "one maximum for all rows of the tile",
    ),
    Mutant(
        "tl.sum(tl.exp(x - shift), axis=1, keep_dims=True)",
        "tl.sum(tl.sum(tl.exp(x - shift), axis=1), axis=0)",
        "one sum for all rows of the tile",
    ),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x) / l_i", "an output without the maximum"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
]
