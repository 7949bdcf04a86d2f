"""What the lists of softmax share.

Speeds are fractions of that of a copy, of a matrix of the same size and dtype, which
takes turns with the kernels.
"""

from collections.abc import Iterator

import torch

from benchmarks import timing
from benchmarks.part import Maker, Shape, Trial, near

COLUMNS = (128, 1024, 4096, 16384, 32768, 131072, 1048576)
SIZE = 2**30  # bytes of a matrix: many times the L2 cache


def shapes(**more: tuple[int, ...]) -> Iterator[Shape]:
    """Rows of all lengths, and of more where a dtype has them."""
    for dtype in ("float32", "bfloat16"):
        for cols in sorted(COLUMNS + more.get(dtype, ())):
            rows = SIZE // getattr(torch, dtype).itemsize // cols
            yield Shape(dtype=dtype, rows=rows, cols=cols)


def matrix(shape: Shape) -> torch.Tensor:
    """Fresh values."""
    return timing.normal(shape.rows, shape.cols, dtype=shape.dtype)


def some(x: torch.Tensor) -> torch.Tensor:
    """A few rows in float64."""
    return x[:: max(1, len(x) // 8)].double()


def compare(
    x: torch.Tensor,
    own: dict[str, Maker],
    peers: dict[str, Maker],
    expected: torch.Tensor,
    passes: int = 2,
) -> Trial:
    """Kernels beside a copy of x.

    Args:
        x: a matrix like those that they read and write.
        own, peers: the kernels.
        expected: what they return of some rows, in float64.
        passes: how many such matrices they read and write at least.
    """

    def check(name: str, found: torch.Tensor | tuple[torch.Tensor]) -> None:
        if name != "copy":
            near(some(found[0] if isinstance(found, tuple) else found), expected)

    y = torch.empty_like(x)
    return Trial(
        own=own,
        peers=peers | {"copy": lambda: lambda: y.copy_(x)},
        check=check,
        work={"bytes": passes * x.nbytes},
        facts={"copy": {"bytes": 2 * x.nbytes}},
        measure=timing.one_by_one,
    )
