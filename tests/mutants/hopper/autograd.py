"""Bugs that the tests of snippets/hopper/autograd.py must catch."""

from tests.mutants import Mutant
from tests.mutants.backward.operators import BEHIND_OPERATORS

MUTANTS = [
    *BEHIND_OPERATORS,
    Mutant(
        "8 <= q.shape[3] <= 128",
        "8 <= q.shape[3] <= 256",
        "a head_dim that only forward takes",
    ),
]
