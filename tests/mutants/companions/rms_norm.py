"""Bugs that the tests of snippets/companions/rms_norm.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.norms import LAUNCH_MUTANTS, ROW_MUTANTS

SQUARE = "tl.sum(x * x, axis=1, keep_dims=True) / cols"
MUTANTS = [
    *ROW_MUTANTS,
    *LAUNCH_MUTANTS,
    Mutant("& (offs_c < cols)", "& (offs_c <= cols)", "a column too many"),
    Mutant("max(2, 4096", "max(1, 4096", "no two rows to a program"),
    Mutant("x_ptrs, mask, other=0.0", "x_ptrs, mask, other=1.0", "a tail of ones"),
    Mutant(
        "tl.sum(x * x, axis=1, keep_dims=True)", "tl.sum(x * x)", "one for all rows"
    ),
    Mutant(SQUARE, SQUARE.replace("cols", "BLOCK_COLS"), "a mean over the whole block"),
    Mutant(SQUARE, SQUARE.replace(" / cols", ""), "a sum, no mean"),
    Mutant("tl.sum(x * x,", "tl.sum(tl.abs(x),", "the mean of the absolute values"),
    Mutant("tl.rsqrt(square + EPS)", "tl.rsqrt(square)", "no eps"),
    Mutant(
        "tl.rsqrt(square + EPS)",
        "1.0 / (tl.sqrt(square) + EPS)",
        "eps outside the root",
    ),
    Mutant("tl.rsqrt(square + EPS)", "1.0 / (square + EPS)", "no root"),
    Mutant("offs_r, rstd,", "offs_r, 1.0 / rstd,", "the root kept, not rstd"),
    Mutant("x * rstd * weight", "x * weight", "rstd left out"),
    Mutant(
        "x * rstd * weight.to(COMPUTE)",
        "x * rstd * (1.0 + weight.to(COMPUTE))",
        "as a norm whose weights begin at 0",
    ),
]
