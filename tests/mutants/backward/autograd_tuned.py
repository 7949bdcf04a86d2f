"""Bugs that the tests of snippets/backward/autograd_tuned.py must catch."""

from tests.mutants import Mutant
from tests.mutants.backward.operators import BEHIND_OPERATORS

MUTANTS = [
    *BEHIND_OPERATORS,
    Mutant("<= 256 and", "<= 264 and", "a head_dim that no kernel takes"),
]
