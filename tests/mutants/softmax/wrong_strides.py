"""Bugs that the tests of snippets/softmax/wrong_strides.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "torch.empty_like(x)",
        "torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)",
        "right: y has the strides of x",
    ),
    Mutant("y_ptr + row * stride_xr", "y_ptr + row * cols", "right for dense rows"),
    Mutant("tl.exp(x - m_i)", "tl.exp(x)", "wrong in another way: no maximum"),
    Mutant(', other=float("-inf")', "", "wrong in another way: no other"),
]
