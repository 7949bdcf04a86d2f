"""Bugs that the tests of snippets/backward/wrong_one_mask.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("    ds = p *", "    p = p.tril()\n    ds = p *", "right: both are masked"),
    Mutant("ds.mT @ q", "ds.tril().mT @ q", "right but for dv"),
    Mutant("p.mT @ do", "p.tril().mT @ do", "right but for dk"),
    Mutant("ds.tril() @ k", "ds @ k", "wrong in another way: dq too"),
    Mutant("ds.tril()", "ds.tril(-1)", "wrong in another way: not its own key"),
    Mutant("bool).triu(1)", "bool).triu()", "wrong in another way: the forward pass"),
    Mutant("@ k * scale", "@ k", "wrong in another way: dq without the scale"),
    Mutant("@ q * scale", "@ q", "wrong in another way: dk without it"),
    Mutant("(do * o)", "(do * v)", "wrong in another way: delta"),
    Mutant(" - lse[..., None]", "", "wrong in another way: no lse"),
]
