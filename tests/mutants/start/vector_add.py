"""Bugs that the tests of snippets/start/vector_add.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("    mask = offs < size\n", "    mask = offs >= 0\n", "no mask"),
    Mutant("offs < size", "offs <= size", "a mask that is one too long"),
    Mutant("offs < size", "offs < size - 1", "a mask that is one too short"),
    Mutant("load(y_ptr + offs", "load(x_ptr + offs", "x added to itself"),
    Mutant("not tensor.is_contiguous()", "False", "any stride accepted"),
    Mutant("triton.cdiv(size, block)", "size // block", "the last block dropped"),
    Mutant("program * BLOCK + ", "program + ", "programs that overlap"),
    Mutant("x + y, mask", "x - y, mask", "a wrong sign"),
    Mutant(
        "torch.empty_like(x)",
        "torch.empty(x.shape, device=x.device)",
        "always float32",
    ),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("and tensor.requires_grad", "and False", "a gradient lost without a word"),
    Mutant('(("x", x), ("y", y))', '(("x", x),)', "y is not looked at"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    Mutant("(y.shape, y.dtype, y.device) !=", "False and () !=", "any y accepted"),
]
