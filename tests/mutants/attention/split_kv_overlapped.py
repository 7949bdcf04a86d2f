"""Bugs that the tests of snippets/attention/split_kv_overlapped.py must catch.

That a launch waits for the one before it, only a GPU shows: the tests look at the
assembly, and count on a graph of launches.
"""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    ANOTHER_DEVICE,
    # A denominator for each column.
    Mutant("l_i * alpha[:, None] + (", "l_i + (", "the sum is not rescaled"),
    Mutant("l_i = tl.sum(l_i, axis=1)", "l_i = tl.max(l_i, axis=1)", "one column"),
    Mutant("(p if FEW else", "(p if FEW and CAUSAL else", "added twice"),
    Mutant(
        "tl.sum(p, axis=1, keep_dims=True)", "tl.max(p, axis=1, keep_dims=True)", "many"
    ),
    Mutant(
        "tl.where(start_n < last, q, 0.0)", "tl.where(start_n < 16, q, 0.0)", "late q"
    ),
    # The rest, as far as the rung before does not have it.
    Mutant("range(split * BLOCK_N,", "range(0,", "every part begins at the first key"),
    Mutant("last, splits * BLOCK_N):", "last, BLOCK_N):", "parts that overlap"),
    Mutant("w[:, None] * o_s", "o_s", "parts that all count the same"),
    Mutant(
        "offs_n = (start_n + tl.arange(0, BLOCK_N)).to(tl.int64)",
        "offs_n = start_n + tl.arange(0, BLOCK_N)",
        "offsets inside a head in 32 bits",
    ),
]
