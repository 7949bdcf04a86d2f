"""Bugs that the tests of snippets/companions/layer_norm_locks.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.gradients import CHECKS, LIMIT, MEAN

MUTANTS = [
    Mutant(
        "    tl.debug_barrier()\n", "", "the lock is released without a barrier before"
    ),
    Mutant(
        "tl.atomic_cas(lock_ptr + which, 0, 1)",
        "tl.atomic_cas(lock_ptr + row % 2, 0, 1)",
        "the lock is taken on the wrong index",
    ),
    Mutant(
        "tl.atomic_xchg(lock_ptr + which, 0)",
        "tl.atomic_xchg(lock_ptr, 0)",
        "another lock is released",
    ),
    Mutant(
        "atomic_xchg(lock_ptr + which, 0)",
        "atomic_xchg(lock_ptr + which, 1)",
        "the lock is never released",
    ),
    Mutant(
        "dw_ptrs = partial_ptr + which * cols",
        "dw_ptrs = partial_ptr + 0 * which",
        "one sum for all locks",
    ),
    Mutant(
        "db_ptrs = dw_ptrs + locks * cols",
        "db_ptrs = dw_ptrs + cols",
        "db over the dw of the next lock",
    ),
    Mutant("torch.zeros((2, locks", "torch.empty((2, locks", "sums begin with NaN"),
    Mutant(
        "mask, other=0.0) + dy * x_hat, mask)",
        "mask, other=0.0) + dy * x, mask)",
        "dw of x, not of x_hat",
    ),
    Mutant("tl.load(dw_ptrs, mask, other=0.0) + dy", "dy", "only the last row in dw"),
    Mutant("tl.load(db_ptrs, mask, other=0.0) + dy", "dy", "only the last row in db"),
    Mutant("other=0.0) + dy, mask)", "other=0.0) + g, mask)", "db with the weight in"),
    Mutant(
        "partial = torch.zeros((2, locks, cols), dtype=torch.float32",
        "partial = torch.zeros((2, locks, cols), dtype=torch.float16",
        "dw and db summed in float16",
    ),
    Mutant(
        "row * stride_dyr + offs * stride_dyc",
        "row * cols + offs",
        "dy taken contiguous",
    ),
    Mutant(
        "row * stride_xr + offs * stride_xc", "row * cols + offs", "x taken contiguous"
    ),
    Mutant("*dy.stride(), *x.stride()", "*x.stride(), *dy.stride()", "strides swapped"),
    Mutant(
        "row = tl.program_id(0).to(tl.int64)",
        "row = tl.program_id(0)",
        "rows in 32 bits",
    ),
    Mutant(
        "offs = tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "offs = tl.arange(0, BLOCK_COLS)",
        "columns in 32 bits",
    ),
    Mutant("x_hat = (x - mean) * rstd", "x_hat = x * rstd", "the mean is forgotten"),
    Mutant(
        "tl.sum(g * x_hat, axis=0) / cols",
        "tl.sum(g * x_hat, axis=0) / BLOCK_COLS",
        "a mean over the tile's columns",
    ),
    Mutant("g - mean_g - x_hat", "g - 2 * mean_g - x_hat", "mean(g) subtracted twice"),
    Mutant("g - mean_g - x_hat", "g - x_hat", "the first mean is forgotten"),
    Mutant("g = dy * w", "g = dy", "the weight is forgotten in dx"),
    Mutant("dx = rstd * (", "dx = (", "dx without rstd"),
    Mutant("cols + offs, dx, mask)", "cols + offs, dx)", "dx: a tail"),
    Mutant("offs < cols", "offs <= cols", "a column too many"),
    Mutant("range(0, locks, BLOCK", "range(0, 64, BLOCK", "64 locks' sums only"),
    Mutant("(offs_l < locks)", "(offs_l <= locks)", "a sum too many"),
    Mutant("total += tl.load(", "total = tl.load(", "only the last sums"),
    Mutant("which * locks + offs_l", "offs_l", "db is dw"),
    Mutant("triton.cdiv(cols, 32)", "cols // 32", "columns without a sum"),
    Mutant("dtype=weight.dtype", "dtype=x.dtype", "dw and db in the dtype of x"),
    Mutant("if locks < 1:", "if False:", "no lock at all"),
    *CHECKS,
    *MEAN,
    *LIMIT,
    Mutant(
        "if dx.numel() == 0:",
        "if rows == 0:",
        "nothing special of no columns",
        may_not_compile=True,
    ),
]
