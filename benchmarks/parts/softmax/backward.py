"""The gradient of softmax: two reads and one write."""

from functools import partial

import torch

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.softmax import compare, matrix, shapes, some

SNIPPETS = ("softmax/gradient.py",)
LONG = (262144,)  # columns


def trial(shape: Shape) -> Trial:
    """The backward pass alone."""
    x, dy = matrix(shape), matrix(shape)
    y, some_dy = torch.softmax(some(x), dim=-1), some(dy)
    dx = y * (some_dy - (y * some_dy).sum(dim=-1, keepdim=True))
    others = {"torch.softmax": partial(peers.softmax_gradient, x, dy)}
    return compare(x, published(SNIPPETS, x, dy), others, dx, passes=3)


PART = Part(
    own=SNIPPETS,
    shapes=partial(shapes, float32=LONG, bfloat16=LONG),
    trial=trial,
)
