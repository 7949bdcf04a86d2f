"""Bugs that the tests of snippets/attention/wrong_large_negative.py must catch."""

from tests.mutants import Mutant

SEEN = "seen & (offs_n[None, :] < seq_k)"
MASK = f"s = s + tl.where({SEEN}, 0.0, -1e6)"

MUTANTS = [
    Mutant(MASK, f's = tl.where({SEEN}, s, float("-inf"))', "right"),
    Mutant(MASK, f"s = s + tl.where({SEEN}, 0.0, -1e4)", "another large number"),
    Mutant(MASK, f"s = tl.where({SEEN}, s, -1e6)", "a number in place of the score"),
    Mutant(") * scale\n", ")\n", "wrong in another way: no scale"),
    Mutant(
        "l_i = l_i * alpha + tl.sum",
        "l_i = l_i + tl.sum",
        "wrong in another way: the sum is not rescaled",
    ),
]
