"""Bugs that the tests of snippets/companions/rms_norm_backward.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.gradients import CHECKS, EMPTY, LIMIT, PROGRAMS, TILES

MUTANTS = [
    *TILES,
    Mutant("x_hat = x * rstd", "x_hat = x", "x_hat without rstd"),
    Mutant("(g - x_hat * mean_gx)", "g", "the mean is forgotten"),
    Mutant(
        "(g - x_hat * mean_gx)",
        "(g - tl.sum(g, axis=1, keep_dims=True) / cols - x_hat * mean_gx)",
        "the gradient of layer norm",
    ),
    Mutant(
        "rstd_ptr + offs_r",
        "rstd_ptr + offs_r * 0 + row",
        "rstd of the tile's first row",
    ),
    *CHECKS,
    *LIMIT,
    *PROGRAMS,
    *EMPTY,
]
