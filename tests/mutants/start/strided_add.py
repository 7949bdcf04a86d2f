"""Bugs that the tests of snippets/start/strided_add.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("x_ptr + offs * stride_x", "x_ptr + offs", "x taken for contiguous"),
    Mutant("y_ptr + offs * stride_y", "y_ptr + offs", "y taken for contiguous"),
    Mutant("y_ptr + offs * stride_y", "y_ptr + offs * stride_x", "y with x's stride"),
    Mutant("x.stride(0), y.stride(0)", "y.stride(0), x.stride(0)", "strides swapped"),
    Mutant("    mask = offs < size\n", "    mask = offs >= 0\n", "no mask"),
    Mutant("offs < size", "offs * stride_x < size", "a mask over addresses"),
    Mutant("triton.cdiv(size, block)", "size // block", "the last block dropped"),
    Mutant("tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "offsets of 32 bits"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("and tensor.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "torch.empty(x.shape, dtype=x.dtype, device=x.device)",
        "torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)",
        "an output with the stride of x, stored as contiguous",
    ),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
