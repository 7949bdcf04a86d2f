"""The row-dots of o and do: two reads, and a number for each row.

Speeds are fractions of that of a copy of o, which takes turns with the kernels.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, near, published

SIZE = 2**30  # bytes of o: many times the L2 cache
SEQ = 4096
# Which dimension of memory comes first within a sequence.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "heads first": lambda x: x,
    "seq first": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
}


def shapes() -> list[Shape]:
    """Each of 2048 columns for all heads of a row, as in a model."""
    return [
        Shape(
            dtype="bfloat16", head_dim=head_dim, layout=layout, seq=SEQ,
            batch=SIZE // (2 * 2048 * SEQ), heads=2048 // head_dim,
        )
        for head_dim, layout in product((64, 128, 256), LAYOUTS)
    ]  # fmt: skip


def inputs(shape: Shape) -> list[Inputs]:
    """o and do."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    view = LAYOUTS[shape.layout]
    names = "o", "do"
    return [{x: view(timing.normal(*size, dtype=shape.dtype)) for x in names}]


def copy(o: Tensor, do: Tensor) -> Call:
    """What a copy of o takes."""
    return peers.copy(o)


def unfused(o: Tensor, do: Tensor) -> Call:
    """PyTorch's operators, one kernel each."""
    return lambda: (o.float() * do).sum(dim=-1)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """Bytes: two reads and delta; a copy reads and writes o."""
    rows = shape.batch * shape.heads * shape.seq
    matrices = 2 * rows * shape.head_dim * timing.itemsize(shape)
    return {"bytes": matrices + (0 if name == "copy" else 4 * rows)}


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare some rows with float64."""
    if name == "copy":
        return
    o, do = (inputs[x][-1, -1].double() for x in ("o", "do"))
    near(found[-1, -1].double(), (o * do).sum(dim=-1))


PART = Part(
    shapes=shapes(),
    inputs=inputs,
    own=published("backward/delta.py"),
    peers={"torch": unfused, "copy": copy},
    facts=facts,
    check=check,
    measure=timing.one_by_one,
)
