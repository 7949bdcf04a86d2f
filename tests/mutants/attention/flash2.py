"""Bugs that the tests of snippets/attention/flash2.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import (
    FINISH_MUTANTS,
    HEAD_MUTANTS,
    HEAD_REFUSAL_MUTANTS,
    LAUNCH_MUTANTS,
    LOOP_MUTANTS,
    ONLINE_MUTANTS,
    POINTER_MUTANTS,
    refusal_mutants,
)

MUTANTS = [
    *POINTER_MUTANTS,
    *HEAD_MUTANTS,
    *ONLINE_MUTANTS,
    *FINISH_MUTANTS,
    *LOOP_MUTANTS,
    *LAUNCH_MUTANTS,
    *refusal_mutants(4),
    *HEAD_REFUSAL_MUTANTS,
    Mutant(
        "kv_head = head // group",
        "kv_head = head % (heads // group)",
        "heads dealt out in turn",
    ),
    Mutant("batch * heads > 65535", "False", "a grid too high for the GPU"),
    Mutant("x.shape[2] * x.stride(2) + ", "", "rows far apart"),
    Mutant(" + head_dim * x.stride(3)", "", "columns far apart"),
]
