"""Bugs that the tests of snippets/softmax/safe.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "numerator = torch.exp(wide - m_i)", "numerator = torch.exp(wide)", "no max"
    ),
    Mutant(
        "x.to(torch.promote_types(x.dtype, torch.float32))",
        "x",
        "sums in the dtype of x",
        2,
    ),
    Mutant(
        "m_i = wide.amax(dim=-1, keepdim=True)",
        "m_i = wide.amax(dim=0, keepdim=True)",
        "the maximum of the columns",
        2,
    ),
    Mutant("(numerator / l_i)", "numerator", "no division"),
    Mutant(
        "m_i = torch.where(m_i.isinf(), 0.0, m_i)", "pass", "logsumexp of -inf is NaN"
    ),
    Mutant("m_i.squeeze(-1) + torch.log(l_i)", "torch.log(l_i)", "m_i is not added"),
    Mutant("torch.log(l_i)", "torch.log2(l_i)", "a logarithm of base 2"),
    Mutant("if x.numel() == 0:", "if False:", "an empty tensor has no maximum"),
    Mutant("if x.shape[-1] == 0:", "if False:", "an empty row has no maximum"),
    Mutant(
        "    numerator = torch.exp(x)\n",
        "    numerator = torch.exp(x - x.amax())\n",
        "a naive softmax that does not overflow",
    ),
]
