"""Bugs that the tests of snippets/start/affine.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("    mask = offs < size\n", "    mask = offs >= 0\n", "no mask"),
    Mutant("offs < size", "offs <= size", "a mask that is one too long"),
    Mutant("offs < size", "offs < size - 1", "a mask that is one too short"),
    Mutant("x * 2 + 1, mask", "x * 2, mask", "nothing added"),
    Mutant("x * 2 + 1, mask", "(x + 1) * 2, mask", "added before the product"),
    Mutant("program * BLOCK + ", "program + ", "programs that overlap"),
    Mutant("triton.cdiv(size, block)", "size // block", "the last block dropped"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("not x.is_contiguous()", "False", "any strides accepted"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "torch.empty_like(x)",
        "torch.empty(x.shape, device=x.device)",
        "always float32",
    ),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
