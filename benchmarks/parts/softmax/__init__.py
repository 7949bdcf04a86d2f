"""What the lists of softmax share.

Speeds are fractions of that of a copy, of a matrix of the same size and dtype, which
takes turns with the kernels.
"""

from functools import partial
from typing import Any

import torch

from benchmarks import timing
from benchmarks.calls import Inputs
from benchmarks.part import Part, Shape, near

COLUMNS = (128, 1024, 4096, 16384, 32768, 131072, 1048576)
SIZE = 2**30  # bytes of a matrix: many times the L2 cache


def shapes(**more: tuple[int, ...]) -> list[Shape]:
    """Rows of all lengths, and of more where a dtype has them."""
    found = []
    for dtype in ("float32", "bfloat16"):
        for cols in sorted(COLUMNS + more.get(dtype, ())):
            found.append(shape := Shape(dtype=dtype, rows=0, cols=cols))
            shape.rows = SIZE // timing.itemsize(shape) // cols
    return found


def matrices(names: str, shape: Shape) -> list[Inputs]:
    """Fresh values for each name."""
    size = shape.rows, shape.cols
    return [{name: timing.normal(*size, dtype=shape.dtype) for name in names.split()}]


def moved(passes: int, name: str, shape: Shape) -> dict[str, Any]:
    """Bytes, of so many reads and writes of a matrix; a copy takes two."""
    matrix = shape.rows * shape.cols * timing.itemsize(shape)
    return {"bytes": (2 if name == "copy" else passes) * matrix}


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare some rows with float64: y = softmax(x), or the gradient of x for dy."""
    if name == "copy":
        return
    found = found[0] if isinstance(found, tuple) else found
    some = slice(None, None, max(1, len(found) // 8))
    expected = torch.softmax(inputs["x"][some].double(), dim=-1)
    if "dy" in inputs:
        dy = inputs["dy"][some].double()
        expected *= dy - (expected * dy).sum(dim=-1, keepdim=True)
    near(found[some].double(), expected)


softmax = partial(Part, check=check, measure=timing.one_by_one)
