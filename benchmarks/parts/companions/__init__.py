"""What the lists of the companions share."""

from itertools import product

import torch.nn.functional as F
from torch import Tensor

from benchmarks import timing
from benchmarks.part import Shape

SIZE = 2**29  # bytes of a matrix: many times the L2 cache
COLUMNS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
EPS = 1e-5


def norms() -> list[Shape]:
    """Both norms, two dtypes, rows of all lengths."""
    found = []
    for norm, dtype, cols in product(
        ("layer", "rms"), ("float32", "bfloat16"), COLUMNS
    ):
        found.append(shape := Shape(norm=norm, dtype=dtype, rows=0, cols=cols))
        shape.rows = SIZE // timing.itemsize(shape) // cols
    return found


def normed(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = EPS
) -> Tensor:
    """PyTorch's layer norm; its RMS norm where there is no bias."""
    if bias is None:
        return F.rms_norm(x, x.shape[1:], weight, eps)
    return F.layer_norm(x, x.shape[1:], weight, bias, eps)
