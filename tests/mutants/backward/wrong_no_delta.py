"""Bugs that the tests of snippets/backward/wrong_no_delta.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "ds = p * dp",
        "ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))",
        "right: delta is subtracted",
    ),
    Mutant("ds = p * dp", "ds = dp", "wrong in another way: no weights"),
    Mutant(" - lse[..., None]", "", "wrong in another way: no lse"),
    Mutant("ds @ k * scale", "ds @ k", "wrong in another way: dq without the scale"),
    Mutant("ds.mT @ q * scale", "ds.mT @ q", "wrong in another way: dk without it"),
    Mutant("p.mT @ do", "ds.mT @ do", "wrong in another way: dv"),
]
