"""Bugs that the tests of snippets/softmax/monoid.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        'shift = torch.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = m_i",
        "no guard for two parts of -inf",
    ),
    Mutant("l_a * torch.exp(m_a - shift)", "l_a", "the left part is not rescaled"),
    Mutant("l_b * torch.exp(m_b - shift)", "l_b", "the right part is not rescaled"),
    Mutant(
        "torch.exp(m_b - shift)",
        "torch.exp(shift - m_b)",
        "the right part is rescaled the wrong way",
    ),
    Mutant("torch.maximum(m_a, m_b)", "m_a", "the maximum of the left part only"),
    Mutant(
        'torch.where(x == float("-inf"), 0.0, torch.ones_like(x))',
        "torch.ones_like(x)",
        "the pair of -inf is not the identity",
    ),
    Mutant('(torch.tensor(float("-inf"))', "(torch.tensor(0.0)", "a maximum of 0"),
    Mutant("torch.tensor(0.0))", "torch.tensor(1.0))", "an identity with a sum of 1"),
    Mutant('value=float("-inf")', "value=0.0", "filled up with 0"),
    Mutant("while width > 1:", "while width > 2:", "the last merge is missing"),
]
