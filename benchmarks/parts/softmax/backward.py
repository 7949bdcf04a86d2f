"""The gradient of softmax, the backward pass alone: two reads and one write."""

from functools import partial

from benchmarks import peers
from benchmarks.part import published
from benchmarks.parts.softmax import matrices, moved, shapes, softmax

PART = softmax(
    shapes=shapes(float32=(262144,), bfloat16=(262144,)),
    inputs=partial(matrices, "x dy"),
    own=published("softmax/gradient.py"),
    peers={"torch.softmax": peers.softmax_gradient, "copy": peers.copy},
    facts=partial(moved, 3),
)
