"""Bugs that the tests of snippets/attention/exp2.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("tl.exp(s - m)", "tl.exp2(s - m)", "base 2 without log2(e)"),
    Mutant("tl.exp2(s * scale_log2", "tl.exp(s * scale_log2", "log2(e), then base e"),
    Mutant("other=0.0) * scale", "other=0.0)", "no scale"),
    Mutant("scale * log2_e, m * log2_e", "scale * log2_e, m", "m in base e"),
    Mutant("scale * log2_e, m * log2_e", "scale, m * log2_e", "the scale in base e"),
    Mutant("p, mask=offs < size", "p, mask=offs >= 0", "no mask", count=2),
    Mutant("offs < size, other", "offs < size - 1, other", "a score lost", count=2),
    Mutant("if base == ", "if base != ", "the other kernel"),
    Mutant(
        "s * scale_log2 - m_log2",
        "(s - m_log2 / scale_log2) * scale_log2",
        "a multiplication that the subtraction does not take in",
    ),
    Mutant("with torch.cuda.device_of(s):", "if True:", "launched on another device"),
    Mutant("torch.is_grad_enabled() and s.requires_grad", "False", "a lost gradient"),
]
