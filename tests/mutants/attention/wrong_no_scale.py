"""Bugs that the tests of snippets/attention/wrong_no_scale.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "torch.softmax(q @ k.mT, dim=-1)",
        "torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1)",
        "right: the scale is there",
    ),
    Mutant(
        "torch.softmax(q @ k.mT, dim=-1)",
        "torch.softmax(q @ k.mT * q.shape[-1] ** 0.5, dim=-1)",
        "wrong in another way: divided by the scale",
    ),
    Mutant(
        "torch.softmax(q @ k.mT, dim=-1)",
        "torch.softmax(q @ k.mT, dim=-2)",
        "wrong in another way: softmax over the queries",
    ),
]
