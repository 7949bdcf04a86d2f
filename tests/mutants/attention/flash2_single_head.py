"""Bugs that the tests of snippets/attention/flash2_single_head.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import (
    ANOTHER_DEVICE,
    FINISH_MUTANTS,
    LAUNCH_MUTANTS,
    LOOP_MUTANTS,
    ONLINE_MUTANTS,
    POINTER_MUTANTS,
    refusal_mutants,
)

MUTANTS = [
    *POINTER_MUTANTS,
    *(m for m in ONLINE_MUTANTS if "acc * alpha" not in m.old),
    Mutant("tl.fma(acc, alpha[:, None]", "tl.fma(acc, 1.0", "no rescaling of o"),
    Mutant("tl.fma(acc, alpha[:, None], pv)", "pv", "the output of the last tile"),
    *FINISH_MUTANTS,
    *LOOP_MUTANTS,
    Mutant("range(0, seq_k, BLOCK_N)", "range(0, seq_q, BLOCK_N)", "keys up to seq_q"),
    Mutant(
        "offs_n = (start_n + tl.arange",
        "offs_n = (start_m + tl.arange",
        "the keys of the query block",
    ),
    Mutant(
        'm_i = tl.full((BLOCK_M,), float("-inf")',
        "m_i = tl.full((BLOCK_M,), 0.0",
        "a maximum that starts at 0",
    ),
    *LAUNCH_MUTANTS,
    ANOTHER_DEVICE,
    Mutant("x.shape[0] * x.stride(0) + ", "", "rows far apart"),
    Mutant(" + head_dim * x.stride(1)", "", "columns far apart"),
    *refusal_mutants(2),
]
