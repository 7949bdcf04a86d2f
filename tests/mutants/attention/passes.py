"""Bugs that the tests of snippets/attention/passes.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("len(q) ** -0.5", "1.0", "no scale", 3),
    Mutant(
        "m_i = torch.maximum(m_i, s)", "m_i = s", "three passes: the last score only"
    ),
    Mutant(
        "l_i = l_i + torch.exp(s - shift)",
        "l_i = l_i + torch.exp(s)",
        "three passes: a denominator without the maximum",
    ),
    Mutant(
        "torch.exp(s - shift) / l_i * v_j",
        "torch.exp(s - shift) * v_j",
        "three passes: no division",
    ),
    Mutant(
        "torch.exp(s - m_i) / l_i * v_j",
        "torch.exp(s) / l_i * v_j",
        "two passes: an output without the maximum",
    ),
    Mutant("m_new = torch.maximum(m_i, s)", "m_new = s", "the maximum is forgotten", 2),
    Mutant(
        'torch.where(m_i == float("-inf"), 0.0, m_i)',
        "m_i",
        "three passes: no guard for scores of -inf",
    ),
    Mutant(
        'torch.where(m_new == float("-inf"), 0.0, m_new)',
        "m_new",
        "no guard for first scores of -inf",
        2,
    ),
    Mutant(
        "l_i * torch.exp(m_i - shift) + torch.exp(s - shift)",
        "l_i + torch.exp(s - shift)",
        "two passes: the denominator is not rescaled",
    ),
    Mutant("l_i * alpha + p", "l_i + p", "one pass: the denominator not rescaled"),
    Mutant("acc * alpha + p", "acc + p", "one pass: the output not rescaled"),
    Mutant(
        "alpha, p = torch.exp(m_i - shift)",
        "alpha, p = torch.exp(shift - m_i)",
        "one pass: rescaled the wrong way round",
    ),
    Mutant("        m_i = m_new\n", "", "the maximum is not kept", 2),
    Mutant("torch.where(l_i == 0, 0.0, acc / l_i)", "acc / l_i", "one pass: 0 / 0"),
    Mutant("torch.where(l_i == 0, 0.0, acc / l_i)", "acc", "one pass: no division"),
    Mutant("if l_i == 0:", "if False:", "more passes: 0 / 0", 2),
    Mutant("if l_i == 0:", "if not l_i > 0:", "more passes: NaN becomes 0", 2),
    Mutant(" or q.dtype not in (torch.float32, torch.float64)", "", "half precision"),
    Mutant(" or len(q) == 0", "", "no components"),
    Mutant("k.ndim != 2 or k.shape[1] != len(q)", "False", "any k"),
    Mutant("or k.dtype != q.dtype", "", "a k of another dtype"),
    Mutant("v.shape != k.shape", "v.ndim != 2", "fewer values than keys"),
    Mutant(" or v.dtype != q.dtype", "", "a v of another dtype"),
]
