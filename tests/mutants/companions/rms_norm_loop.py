"""Bugs that the tests of snippets/companions/rms_norm_loop.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.norms import LAUNCH_MUTANTS

LOOP = "tl.range(0, cols, BLOCK_COLS, loop"
ROOT = "tl.rsqrt(tl.sum(lane_sum, axis=1, keep_dims=True) / cols + EPS)"
MUTANTS = [
    *LAUNCH_MUTANTS,
    Mutant("offs_r * stride_xr", "offs_r * cols", "x as contiguous"),
    Mutant("offs_c * stride_xc", "offs_c", "the column stride of x ignored", 2),
    Mutant("offs_c * stride_w", "offs_c", "the stride of weight ignored"),
    Mutant("y_ptr += offs_r * cols", "y_ptr += offs_r * stride_xr", "y as x lies"),
    Mutant("y, mask, cache", "y, mask_c, cache", "rows past the end"),
    Mutant("y, mask, cache", "y, offs_r < rows, cache", "columns past the end"),
    Mutant(".to(tl.int64) * BLOCK_ROWS", " * BLOCK_ROWS", "row offsets in 32 bits"),
    Mutant("(0, BLOCK_COLS).to(tl.int64)", "(0, BLOCK_COLS)", "columns in 32 bits"),
    Mutant(
        "mask = (offs_r < rows) &", "mask = (offs_r <= rows) &", "a row too many", 2
    ),
    Mutant("offs_c < cols", "offs_c <= cols", "a column too many", 2),
    Mutant(
        "mask = (offs_r < rows) & (offs_c < cols)",
        "mask = (offs_r < rows) & (offs_c <= cols)",
        "a column too many in the sum",
    ),
    Mutant(
        "mask = (offs_r < rows) & (offs_c < cols)",
        "mask = offs_r < rows",
        "no mask of the columns in the sum",
    ),
    Mutant(
        'mask, other=0.0, eviction_policy="evict_last"',
        'mask, other=1.0, eviction_policy="evict_last"',
        "a tail of ones",
    ),
    Mutant(
        LOOP,
        "tl.range(0, cols // BLOCK_COLS * BLOCK_COLS, BLOCK_COLS, loop",
        "the last columns dropped",
        2,
    ),
    Mutant(LOOP, "tl.range(BLOCK_COLS, cols, BLOCK_COLS, loop", "no first tile", 2),
    Mutant("offs_c = start + offs", "offs_c = offs", "the first tile over and over", 2),
    Mutant(
        "offs_c = start + offs\n        mask_c",
        "offs_c = offs\n        mask_c",
        "the first tile over and over in the second pass",
    ),
    Mutant("x * x - excess", "x - excess", "a sum that is not one of squares"),
    Mutant("x * x - excess", "tl.abs(x) - excess", "the mean of the absolute values"),
    Mutant("x * x - excess", "x * x", "what rounding did is not given back"),
    Mutant("x * x - excess", "x * x + excess", "what rounding did is given twice"),
    Mutant("new_sum < float", "new_sum <= float", "infinity less infinity"),
    Mutant("lane_sum = new_sum", "lane_sum = square", "only the last tile"),
    Mutant(ROOT, ROOT.replace(", axis=1, keep_dims=True", ""), "one for all rows"),
    Mutant(ROOT, ROOT.replace(" / cols", ""), "a sum, no mean"),
    Mutant(
        ROOT,
        ROOT.replace(" / cols", " / (tl.cdiv(cols, BLOCK_COLS) * BLOCK_COLS)"),
        "a mean over whole tiles",
    ),
    Mutant(ROOT, ROOT.replace(" + EPS", ""), "no eps"),
    Mutant(
        ROOT,
        "1.0 / (tl.sqrt(tl.sum(lane_sum, axis=1, keep_dims=True) / cols) + EPS)",
        "eps outside the root",
    ),
    Mutant(ROOT, "1.0 / " + ROOT.removeprefix("tl.rsqrt"), "no root"),
    Mutant("x * rstd * weight", "x * weight", "rstd left out"),
    Mutant("weight.to(COMPUTE)", "1.0", "no weight"),
    Mutant(
        "x * rstd * weight.to(COMPUTE)",
        "x * rstd * (1.0 + weight.to(COMPUTE))",
        "as a norm whose weights begin at 0",
    ),
    Mutant("rstd, offs_r < rows)", "rstd)", "rstd past the last row"),
    Mutant("offs_r, rstd,", "offs_r, 1.0 / rstd,", "the root kept, not rstd"),
    Mutant(
        "    tl.store(rstd_ptr + offs_r, rstd, offs_r < rows)\n", "", "rstd not kept"
    ),
    Mutant("block_cols or best", "best", "block_cols ignored", may_not_compile=True),
    Mutant("= 2 if whole * itemsize <= 8192 else 1", "= 1", "no two rows to a program"),
]
