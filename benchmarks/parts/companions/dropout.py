"""Dropout forward: one read and one write of the matrix, and a mask where one is kept.

PyTorch gets a matrix that requires a gradient, so that it keeps what its backward pass
will need. Our backward passes are the same kernels once more. Speeds are fractions
of that of a copy of a matrix of the same size and dtype, which takes turns.
"""

from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Kernel, Part, Shape, Wrong, near, published

P = 0.1
SIZES = (64, 1024)  # MiB of a matrix: little more than the L2 cache, or much more
COLUMNS = 4096
STORED, SEEDED = "companions/stored_dropout.py", "companions/seeded_dropout.py"
DRAWN = "tl.interleave(words & 0xFFFF, words >> 16).to(tl.int32)"
COUNTED = "first // 8 + tl.arange(0, BLOCK // 8)"
# Fewer elements for each call of Philox.
SHARED = {
    "seeded - four elements to a call": Kernel(
        SEEDED,
        {
            DRAWN: "(words & 0xFFFF).to(tl.int32)",
            COUNTED: "first // 4 + tl.arange(0, BLOCK // 4)",
        },
    ),
    "seeded - a call for each element": Kernel(
        SEEDED,
        {
            DRAWN: "(r0 & 0xFFFF).to(tl.int32)",
            COUNTED: "first + tl.arange(0, BLOCK)",
        },
    ),
}


def shapes() -> list[Shape]:
    """Two dtypes, two sizes."""
    found = []
    for dtype, mib in product(("float32", "bfloat16"), SIZES):
        found.append(shape := Shape(dtype=dtype, mib=mib, rows=0, cols=COLUMNS))
        shape.rows = mib * 2**20 // timing.itemsize(shape) // COLUMNS
    return found


def matrices(shape: Shape) -> list[Inputs]:
    """Fresh x, a mask, p and a seed."""
    x = timing.normal(shape.rows, shape.cols, dtype=shape.dtype)
    keep = torch.rand_like(x, dtype=torch.float32) >= P
    return [{"x": x, "keep": keep, "p": P, "seed": 2026}]


def torch_dropout(x: Tensor, p: float, **others: Any) -> Call:
    """PyTorch's own: it stores a mask, and draws it."""
    return partial(F.dropout, x.detach().requires_grad_(), p)


def compiled_dropout(x: Tensor, p: float, **others: Any) -> Call:
    """PyTorch's own kernel for this very shape: it draws the mask again, too."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: F.dropout(x, p), dynamic=False)
    return partial(compiled, x.detach().requires_grad_())


def check(name: str, inputs: Inputs, found: Tensor) -> None:
    """What stays is scaled, about as much as should is 0."""
    if name == "copy":
        return
    some = slice(None, None, max(1, len(found) // 64))
    x, y = inputs["x"][some].double(), found.detach()[some].double()
    near(y, torch.where(y != 0, x / (1 - P), 0.0))
    zeros = ((y == 0) & (x != 0)).double().mean().item()
    if not abs(zeros - P) < 5 * (P / y.numel()) ** 0.5:
        raise Wrong(f"{zeros:.4f} are 0, not {P}")


def moved(name: str, shape: Shape) -> dict[str, Any]:
    """Bytes: the matrix twice, and a byte of each mask that is read."""
    numbers = shape.rows * shape.cols
    mask = numbers if name == STORED else 0
    return {"bytes": 2 * numbers * timing.itemsize(shape) + mask}


PART = Part(
    shapes=shapes(),
    inputs=matrices,
    own=published(STORED, SEEDED) | SHARED,
    peers={
        "F.dropout": torch_dropout,
        "torch.compile": compiled_dropout,
        "copy": peers.copy,
    },
    check=check,
    facts=moved,
    measure=timing.one_by_one,
)
