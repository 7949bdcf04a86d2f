"""Bugs that the tests of snippets/attention/flash2_causal.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import CAUSAL_MUTANTS

MUTANTS = [
    *CAUSAL_MUTANTS,
    Mutant(
        "tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)",
        "seq_k",
        "nothing is skipped",
    ),
    Mutant(
        "tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)",
        "0",
        "every tile is masked",
    ),
]
