"""The gradient of softmax: two reads and one write."""

from functools import partial

import torch

from benchmarks import peers, timing
from benchmarks.part import Part, Shape, Trial, near, published
from benchmarks.parts.softmax import copy, matrix, shapes, some

SNIPPETS = ("softmax/gradient.py",)
LONG = (262144,)  # columns


def trial(shape: Shape) -> Trial:
    """The backward pass alone."""
    x, dy = matrix(shape), matrix(shape)
    y, some_dy = torch.softmax(some(x), dim=-1), some(dy)
    dx = y * (some_dy - (y * some_dy).sum(dim=-1, keepdim=True))
    return Trial(
        own=published(SNIPPETS, x, dy),
        peers={
            "torch.softmax": partial(peers.softmax_gradient, x, dy),
            "copy": partial(copy, x),
        },
        check=lambda name, found: name == "copy" or near(some(found[0]), dx),
        work={"bytes": 3 * x.nbytes},
        facts={"copy": {"bytes": 2 * x.nbytes}},
        measure=timing.one_by_one,
    )


PART = Part(
    own=SNIPPETS,
    shapes=lambda: shapes(float32=LONG, bfloat16=LONG),
    trial=trial,
)
