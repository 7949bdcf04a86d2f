"""Bugs that the tests of snippets/companions/wrong_moments.py must catch."""

from tests.mutants import Mutant

WRONG = "tl.sum(x * x, axis=0) / cols - mean * mean"
MUTANTS = [
    Mutant(
        WRONG,
        "tl.sum(tl.where(mask, (x - mean) * (x - mean), 0.0), axis=0) / cols",
        "right",
    ),
    Mutant(WRONG, "tl.sum(x * x, axis=0) / cols", "wrong in another way: no mean"),
    Mutant("variance + EPS", "variance", "wrong in another way: no eps"),
    Mutant("y * weight + bias", "y * weight", "wrong in another way: no bias"),
    Mutant("offs < cols", "offs <= cols", "wrong in another way: reads past the row"),
]
