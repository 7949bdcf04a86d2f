"""Softmax: one read and one write of the matrix, whatever a kernel really moves."""

from functools import partial

import torch

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.softmax import compare, matrix, shapes, some

WHOLE = ("softmax/one_row.py", "softmax/whole_row.py", "softmax/persistent.py")
ANY = (
    "softmax/three_pass.py",
    "softmax/online.py",
    "softmax/tree.py",
    "softmax/tiles.py",
    "softmax/split_row.py",
    "softmax/long_rows.py",
)
LONGEST = 65536  # columns that the first ones take
# Just past these lengths the chunks of `long_rows` outgrow the L1 cache.
BEYOND = {"float32": (1114112,), "bfloat16": (2097152, 2228224)}


def trial(shape: Shape) -> Trial:
    """All kernels on a matrix."""
    x = matrix(shape)
    own = published(ANY + (WHOLE if shape.cols <= LONGEST else ()), x)
    others = {
        "torch.softmax": lambda: partial(torch.softmax, x, dim=-1),
        "torch.compile": partial(peers.compiled_softmax, x),
        "liger": partial(peers.liger_softmax, x),
    }
    return compare(x, own, others, torch.softmax(some(x), dim=-1))


PART = Part(
    own=WHOLE + ANY,
    shapes=partial(shapes, **BEYOND),
    trial=trial,
    compiled=("torch.compile",),
)
