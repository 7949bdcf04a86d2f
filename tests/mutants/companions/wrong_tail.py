"""Bugs that the tests of snippets/companions/wrong_tail.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("centred = x - mean", "centred = tl.where(mask, x - mean, 0.0)", "right"),
    Mutant(
        "tl.sum(centred * centred, axis=0) / cols",
        "tl.sum(centred * centred, axis=0) / BLOCK_COLS",
        "wrong in another way: a mean over the whole block",
    ),
    Mutant("variance + EPS", "variance", "wrong in another way: no eps"),
    Mutant("y * weight + bias", "y * weight", "wrong in another way: no bias"),
    Mutant("offs < cols", "offs <= cols", "wrong in another way: reads past the row"),
]
