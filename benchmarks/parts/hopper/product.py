"""Products of large matrices, a b^T, against cuBLAS.

FLOPs are 2 m n k. The longest dimension of the second shape is k, of the third n; the
last fills the GPU's programs unevenly.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, near, published


def factors(shape: Shape) -> list[Inputs]:
    """Fresh a and b."""
    return [
        {
            name: timing.normal(rows, shape.k, dtype=shape.dtype)
            for name, rows in (("a", shape.m), ("b", shape.n))
        }
    ]


def cublas(a: Tensor, b: Tensor) -> Call:
    """PyTorch's own: it calls cuBLAS."""
    return partial(torch.mm, a, b.T)


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare some rows with float64."""
    some = slice(None, None, max(1, len(found) // 8))
    expected = inputs["a"][some].double() @ inputs["b"].double().T
    near(found[some].double(), expected)


def flops(name: str, shape: Shape) -> dict[str, Any]:
    """A multiplication and an addition for each element of a row and each column."""
    return {"flops": 2 * shape.m * shape.n * shape.k}


SIZES = (
    (8192, 8192, 8192),
    (4096, 4096, 16384),
    (16384, 8192, 2048),
    (5000, 5000, 4096),
)

PART = Part(
    shapes=[Shape(dtype="bfloat16", m=m, n=n, k=k) for m, n, k in SIZES],
    inputs=factors,
    own=published(
        "hopper/product_wgmma.py",
        "hopper/product_pipelined.py",
        "hopper/product_specialised.py",
    ),
    peers={"cublas": cublas},
    check=check,
    facts=flops,
    ceiling="matmul",
    against={"times_cublas": "cublas"},
)
