"""Bugs that the tests of snippets/companions/layer_norm.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.norms import BIAS_MUTANTS, LAUNCH_MUTANTS, ROW_MUTANTS

MUTANTS = [
    *ROW_MUTANTS,
    *BIAS_MUTANTS,
    *LAUNCH_MUTANTS,
    Mutant("(offs_c < cols)", "(offs_c <= cols)", "a column too many"),
    Mutant("FULL=cols == block_cols", "FULL=True", "no tail is masked"),
    Mutant("FULL=cols == block_cols", "FULL=cols >= 128", "long tails are not masked"),
    Mutant("max(2, 2048", "max(1, 2048", "no two rows to a program"),
    Mutant("tl.where(mask_c, x - mean, 0.0)", "x - mean", "a tail of -mean"),
    Mutant("tl.where(mask_c, x - first, 0.0)", "x - first", "a tail of -first"),
    Mutant("tl.where(mask_c, x - first, 0.0)", "x", "no shift"),
    Mutant(
        "x_ptr + offs_r * stride_xr, offs_r",
        "x_ptr + offs_r * cols, offs_r",
        "the shift of another row",
    ),
    Mutant("tl.sum(x, axis=1, keep_dims=True)", "tl.sum(x)", "one mean for all rows"),
    Mutant(
        "tl.sum(centred * centred, axis=1, keep_dims=True)",
        "tl.sum(centred * centred)",
        "one variance for all rows",
    ),
    Mutant(
        "tl.sum(centred * centred, axis=1, keep_dims=True) / cols",
        "tl.sum(x * x, axis=1, keep_dims=True) / cols",
        "a variance around the first element",
    ),
    Mutant(
        "keep_dims=True) / cols\n    # Past",
        "keep_dims=True) / BLOCK_COLS\n    # Past",
        "a mean over the whole block",
    ),
    Mutant(
        "keep_dims=True) / cols\n    # --8<-- [line:rstd]",
        "keep_dims=True) / BLOCK_COLS\n    # --8<-- [line:rstd]",
        "a variance over the whole block",
    ),
    Mutant(
        "keep_dims=True) / cols\n    # --8<-- [line:rstd]",
        "keep_dims=True) / tl.maximum(cols - 1, 1)\n    # --8<-- [line:rstd]",
        "a variance of a sample",
    ),
    Mutant("tl.rsqrt(variance + EPS)", "tl.rsqrt(variance)", "no eps"),
    Mutant("tl.rsqrt(variance + EPS)", "tl.rsqrt(variance) + EPS", "eps outside"),
    Mutant(
        "tl.rsqrt(variance + EPS)",
        "1.0 / (tl.sqrt(variance) + EPS)",
        "eps outside the root",
    ),
    Mutant("tl.rsqrt(variance + EPS)", "1.0 / (variance + EPS)", "no root"),
    Mutant(
        "tl.store(rstd_ptr + offs_r, rstd,",
        "tl.store(rstd_ptr + offs_r, 1.0 / rstd,",
        "the standard deviation kept, not rstd",
    ),
    Mutant(
        "tl.store(rstd_ptr + offs_r, rstd,",
        "tl.store(rstd_ptr + offs_r, variance,",
        "the variance kept",
    ),
    Mutant("centred * rstd", "x * rstd", "the mean is not subtracted"),
    Mutant(
        "centred * rstd * weight.to(COMPUTE) + bias.to(COMPUTE)",
        "centred * rstd * (weight.to(COMPUTE) + bias.to(COMPUTE))",
        "weight and bias added first",
    ),
]
