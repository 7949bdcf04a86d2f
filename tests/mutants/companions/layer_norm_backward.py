"""Bugs that the tests of snippets/companions/layer_norm_backward.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.gradients import (
    CHECKS,
    EMPTY,
    LIMIT,
    MEAN,
    PROGRAMS,
    TILES,
)

MUTANTS = [
    *TILES,
    Mutant(
        "dy = tl.load(dy_ptrs, mask, other=0.0)",
        "dy = tl.load(dy_ptrs, mask, other=1.0)",
        "dy: a tail of ones",
    ),
    Mutant("x_hat = (x - mean) * rstd", "x_hat = x * rstd", "the mean is forgotten"),
    Mutant("x_hat = (x - mean) * rstd", "x_hat = x - mean", "x_hat without rstd"),
    Mutant(
        "mean_g = tl.sum(g, axis=1, keep_dims=True) / cols",
        "mean_g = tl.sum(g) / cols",
        "the first mean over all rows of a block",
    ),
    Mutant("g - mean_g - x_hat", "g - x_hat", "the first mean is forgotten"),
    Mutant("g - mean_g - x_hat", "g - 2 * mean_g - x_hat", "mean(g) subtracted twice"),
    Mutant("tl.sum(g, axis=1", "tl.sum(dy, axis=1", "the first mean without weights"),
    Mutant("db += dy", "db += g", "db with the weight in it"),
    Mutant("db += dy", "db = dy", "only the last tile in db"),
    Mutant(
        "db += dy",
        "db = (db + dy).to(tl.float16).to(tl.float32)",
        "db summed in float16",
    ),
    Mutant(
        "partial_ptr + programs * cols, tl",
        "partial_ptr + cols, tl",
        "db over the dw of the next program",
    ),
    Mutant("which * programs + offs_p", "offs_p", "db is dw"),
    Mutant("sum_ptr + which * cols", "sum_ptr", "dw and db in one place"),
    Mutant(
        "return dx, sums[0], sums[1]", "return dx, sums[1], sums[0]", "dw, db swapped"
    ),
    Mutant(
        "mean_ptr + offs_r",
        "mean_ptr + offs_r * 0 + row",
        "the mean of the tile's first row",
    ),
    Mutant("max(1, WARPS // num_warps)", "0", "no program on the GPU"),
    *CHECKS,
    *MEAN,
    *LIMIT,
    *PROGRAMS,
    *EMPTY,
]
