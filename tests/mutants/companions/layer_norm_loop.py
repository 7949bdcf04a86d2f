"""Bugs that the tests of snippets/companions/layer_norm_loop.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.norms import BIAS_MUTANTS, LAUNCH_MUTANTS

LOOP = "tl.range(0, cols, BLOCK_COLS, loop"
MUTANTS = [
    *LAUNCH_MUTANTS,
    *BIAS_MUTANTS,
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
        LOOP,
        "tl.range(0, cols // BLOCK_COLS * BLOCK_COLS, BLOCK_COLS, loop",
        "the last columns dropped",
        2,
    ),
    Mutant("offs_c = start + offs", "offs_c = offs", "the first tile over and over", 2),
    Mutant(
        "tl.where(mask_c, x - lane_mean, 0.0)", "x - lane_mean", "a tail that counts"
    ),
    Mutant("FULL=cols % block_cols == 0", "FULL=True", "no tail is masked"),
    Mutant(
        "FULL=cols % block_cols == 0",
        "FULL=cols >= block_cols",
        "tails after the first tile are not masked",
    ),
    Mutant("        seen += 1.0\n", "", "a count that stays", may_not_compile=True),
    Mutant("        x -= first\n", "", "no shift in the first pass"),
    Mutant("(x - first - mean)", "(x - mean)", "no shift in the second pass"),
    Mutant("delta * (1.0 / seen)", "delta", "the last element for a mean"),
    Mutant(
        "delta * (x - lane_mean)", "delta * delta", "both deviations from the old mean"
    ),
    Mutant("lane_m2 += delta", "lane_m2 = delta", "only the last tile in m2"),
    Mutant(
        "(cols - offs + BLOCK_COLS - 1) // BLOCK_COLS",
        "(cols - 0 * offs) // BLOCK_COLS",
        "lanes of the tail count less",
    ),
    Mutant(
        "(cols - offs + BLOCK_COLS - 1) // BLOCK_COLS",
        "(cols - 0 * offs + BLOCK_COLS - 1) // BLOCK_COLS",
        "every lane saw as many",
    ),
    Mutant(
        "tl.sum(lane_mean * count, axis=1, keep_dims=True)",
        "tl.sum(lane_mean, axis=1, keep_dims=True)",
        "lanes that do not count what they saw",
    ),
    Mutant(
        "tl.sum(lane_mean * count, axis=1, keep_dims=True)",
        "tl.sum(lane_mean * count)",
        "one mean for all rows",
    ),
    Mutant(
        "axis=1, keep_dims=True)\n    # --8<-- [line:rstd]",
        ")\n    # --8<-- [line:rstd]",
        "one variance for all rows",
    ),
    Mutant(
        "lane_m2 + apart * apart * count",
        "lane_m2",
        "what lies between the lanes left out",
    ),
    Mutant(
        "lane_m2 + apart * apart * count",
        "lane_m2 + apart * apart",
        "the same counted once a lane",
    ),
    Mutant(
        "lane_m2 + apart * apart * count",
        "apart * apart * count",
        "what lies within the lanes left out",
    ),
    Mutant("tl.rsqrt(m2 / cols + EPS)", "tl.rsqrt(m2 / cols)", "no eps"),
    Mutant(
        "tl.rsqrt(m2 / cols + EPS)",
        "1.0 / (tl.sqrt(m2 / cols) + EPS)",
        "eps outside the root",
    ),
    Mutant("tl.rsqrt(m2 / cols + EPS)", "1.0 / (m2 / cols + EPS)", "no root"),
    Mutant(
        "tl.rsqrt(m2 / cols + EPS)",
        "tl.rsqrt(m2 / tl.maximum(cols - 1, 1) + EPS)",
        "a variance of a sample",
    ),
    Mutant("weight.to(COMPUTE)", "1.0", "no weight"),
    Mutant("rstd, offs_r < rows)", "rstd)", "rstd past the last row"),
    Mutant(
        "tl.store(rstd_ptr + offs_r, rstd,",
        "tl.store(rstd_ptr + offs_r, 1.0 / rstd,",
        "the standard deviation kept",
    ),
    Mutant("block_cols or best", "best", "block_cols ignored", may_not_compile=True),
    Mutant("= 2 if whole * itemsize <= 8192 else 1", "= 1", "no two rows to a program"),
]
