"""Bugs that the tests of snippets/softmax/numerics.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "total = total + term",
        "total = term",
        "left_to_right keeps the last term only",
    ),
    Mutant(
        "terms = torch.nn.functional.pad(terms, (0, 1))",
        "terms = terms[:, :-1]",
        "pairwise drops the last of an odd number of terms",
    ),
    Mutant(
        "l_i = l_i * torch.exp(m_i - m_new) + pairwise",
        "l_i = l_i + pairwise",
        "online does not rescale",
    ),
    Mutant(
        "m_i = torch.full_like(x[:, :1], -math.inf)",
        "m_i = torch.full_like(x[:, :1], 100.0)",
        "a running maximum that starts too high",
    ),
    Mutant(
        "l_i = l_i * torch.exp(m_i - m_new.repeat_interleave(2, dim=1))",
        "l_i = l_i * torch.exp(m_i - m_i.amax(dim=1, keepdim=True))",
        "tree rescales to the maximum of the row at every level",
    ),
    Mutant("return online(x, 256)", "return online(x, 1)", "tiles of a single column"),
    Mutant(
        "torch.finfo(dtype).eps",
        "torch.finfo(inside).eps",
        "the error in epsilons of another dtype",
    ),
    Mutant("    x = x.to(dtype)\n", "", "the input is not rounded to its dtype"),
    Mutant("inside = inside or dtype", "inside = dtype", "inside is ignored"),
]
