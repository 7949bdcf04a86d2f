"""Bugs that the tests of snippets/companions/moments.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "dim=1, keepdim=True) - mean * mean", "dim=1, keepdim=True)", "squares around 0"
    ),
    Mutant("(centred * centred).mean", "(x * x).mean", "two passes around 0"),
    Mutant("two_passes(x - x[:, :1])", "two_passes(x)", "no shift"),
    Mutant(
        "two_passes(x - x[:, :1])",
        "two_passes(x - x[:1, :1])",
        "one shift for all rows",
    ),
    Mutant("delta / seen", "delta / (seen + 1)", "a count that is one ahead"),
    Mutant("m2 + delta * (value - mean)", "m2 + delta * delta", "the old mean twice"),
    Mutant("return x - mean, m2 / x.shape[1]", "return x - mean, m2", "no division"),
    Mutant("x.split(32, dim=1)", "x.split(1000, dim=1)", "a single part"),
    Mutant("delta * (more / (n + more))", "delta * 0.5", "parts of one weight"),
    Mutant(
        "part_m2 + delta * n * shift", "part_m2", "what lies between parts left out"
    ),
    Mutant("mean + shift, m2 +", "mean + shift,", "only the last part in m2"),
    Mutant("return x - mean, m2 / n", "return x - mean, m2 / (n - 1)", "of a sample"),
    Mutant("variance + eps)", "variance)", "eps ignored"),
    Mutant("form(x.to(inner))", "form(x.double())", "inner ignored"),
    Mutant("eps=eps", "eps=1e-5", "the reference with another eps"),
    Mutant(
        "{error(form, x, inner):11", "{error(form, x):11", "the table in float32 alone"
    ),
]
