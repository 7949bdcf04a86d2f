"""Bugs that the tests of snippets/attention/partial.py must catch."""

from tests.mutants import Mutant

GUARD = 'shift = torch.where(m_i == float("-inf"), 0.0, m_i)'

MUTANTS = [
    Mutant("q @ k.mT * scale", "q @ k.mT", "no scale"),
    Mutant("if scale is None", "if not scale", "a scale of 0 ignored"),
    Mutant(GUARD, "shift = m_i", "no guard for parts of -inf", 3),
    Mutant("p = torch.exp(s - shift)", "p = torch.exp(s)", "no maximum"),
    Mutant("if k.shape[-2] == 0:", "if False:", "no keys have no maximum"),
    Mutant(
        'torch.full_like(l_i, float("-inf"))', "l_i", "an identity with a maximum of 0"
    ),
    Mutant(
        "l_i = torch.zeros_like(q[..., :1])",
        "l_i = torch.ones_like(q[..., :1])",
        "an identity with a denominator of 1",
    ),
    Mutant("torch.maximum(m_a, m_b)", "m_a", "the maximum of the left part only"),
    Mutant("l_a * alpha + l_b * beta", "l_a + l_b", "denominators simply added"),
    Mutant("acc_a * alpha + acc_b * beta", "acc_a + acc_b", "outputs simply added"),
    Mutant(
        "acc_a * alpha + acc_b * beta",
        "acc_a * beta + acc_b * alpha",
        "the factors of the other part",
    ),
    Mutant("torch.exp(m_a - shift)", "torch.exp(shift - m_a)", "the wrong way round"),
    Mutant("acc / torch.where(l_i == 0, 1.0, l_i)", "acc / l_i", "0 / 0"),
    Mutant("acc / torch.where(l_i == 0, 1.0, l_i)", "acc", "no division"),
    Mutant(
        "acc / torch.where(l_i == 0, 1.0, l_i)",
        "acc.nan_to_num() / torch.where(l_i > 0, l_i, 1.0)",
        "NaN becomes 0",
    ),
    Mutant("lse = m_i + torch.log(l_i)", "lse = torch.log(l_i)", "no maximum in lse"),
    Mutant("lse = m_i + torch.log(l_i)", "lse = m_i + l_i", "no logarithm"),
    Mutant("torch.maximum(lse_a, lse_b)", "lse_a", "weights that overflow"),
    Mutant(
        "o = o / torch.where(l_i == 0, 1.0, l_i)[..., None]",
        "o = o / 2",
        "a mean of two parts, whatever their weights",
    ),
    Mutant(
        "o = o / torch.where(l_i == 0, 1.0, l_i)[..., None]",
        "o = o * torch.exp(shift - m_i - torch.log(l_i))[..., None]",
        "nothing and nothing is NaN",
    ),
    Mutant("return o, m_i + torch.log(l_i)", "return o, m_i", "an lse of one part"),
    Mutant("(v.shape, v.dtype) != (k.shape, k.dtype)", "False", "any v"),
    Mutant("not same or ", "", "other leading dimensions of k"),
    Mutant("(k.shape[-1], k.dtype) != (q.shape[-1], q.dtype)", "False", "any k"),
    Mutant(" or q.dtype not in (torch.float32, torch.float64)", "", "half precision"),
]
