"""Bugs that the tests of snippets/companions/stored_dropout.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("x * SCALE, 0.0)", "x, 0.0)", "no 1 / (1 - p)"),
    Mutant("1 / (1 - p) if", "1 - p if", "scaled the wrong way round"),
    Mutant("1 / (1 - p) if", "1 / p if", "p and 1 - p mixed up"),
    Mutant("1 / (1 - p) if p < 1 else 0.0", "1 / (1 - p)", "1 / 0"),
    Mutant("keep != 0", "keep == 0", "the mask the wrong way round"),
    Mutant(
        "tl.where(keep != 0, x * SCALE, 0.0)",
        "x * keep.to(COMPUTE) * SCALE",
        "a product: what is dropped leaves its NaN",
    ),
    Mutant(".to(tl.int64) * BLOCK", " * BLOCK", "offsets in 32 bits"),
    Mutant("offs < size", "offs <= size", "one element too many"),
    Mutant("x_ptr + offs, mask, other=0.0", "x_ptr + offs", "x without a mask"),
    Mutant("keep_ptr + offs, mask, other=0", "keep_ptr + offs", "keep without a mask"),
    Mutant("y_ptr + offs, y, mask", "y_ptr + offs, y", "y without a mask"),
    Mutant(
        "tl.float64 if x.dtype == torch.float64 else tl.float32",
        "tl.float32",
        "float64 in float32",
    ),
    Mutant("triton.cdiv(x.numel(), block)", "x.numel() // block", "the rest forgotten"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant(
        "(keep.dtype, keep.device) != (torch.bool, x.device)",
        "keep.device != x.device",
        "a mask of bytes",
    ),
    Mutant(
        "(keep.dtype, keep.device) != (torch.bool, x.device)",
        "keep.dtype != torch.bool",
        "a mask on another device",
    ),
    Mutant("keep.shape != x.shape", "keep.numel() != x.numel()", "another shape"),
    Mutant("not tensor.is_contiguous()", "False", "strides ignored"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant("not 0 <= p <= 1", "not 0 <= p < 1", "a p of 1 refused"),
    Mutant("not 0 <= p <= 1", "p < 0 or p > 1", "a p of NaN"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
