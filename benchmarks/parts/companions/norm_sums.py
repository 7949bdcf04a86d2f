"""Layer norm's backward pass with more and fewer partial sums of dw and db.

Of the kernel without locks: programs for each multiprocessor, each of which has a row
of partial sums. Of that with locks: how many there are, and which a program takes.
"""

from functools import partial

from benchmarks import peers, timing
from benchmarks.part import Part, Shape
from benchmarks.parts.companions.norm_backward import (
    LOCKS,
    ONE,
    Backward,
    check,
    matrices,
    moved,
)

PROGRAMS = (1, 2, 4, 8, 16, 32)  # for each multiprocessor
COUNTS = (16, 64, 256, 1024)
TAKE = "which = row % locks"
SHAPE = partial(Shape, norm="layer", dtype="bfloat16")


def programs(count: int) -> Backward:
    """So many programs for each multiprocessor."""
    old = "max(1, WARPS // num_warps)"
    return Backward(ONE, {old: str(count)})


OWN = {f"layer_norm_backward, {n} each": programs(n) for n in PROGRAMS}
for count in COUNTS:
    OWN[f"layer_norm_locks, {count}"] = Backward(LOCKS, options={"locks": count})
# Programs that run at the same time want the same lock.
NEIGHBOURS = {TAKE: "which = row * locks // tl.num_programs(0)"}
OWN["layer_norm_locks, neighbours"] = Backward(LOCKS, NEIGHBOURS)


PART = Part(
    shapes=[SHAPE(rows=16384, cols=4096), SHAPE(rows=65536, cols=1024)],
    inputs=matrices,
    own=OWN,
    peers={"copy": peers.copy},
    check=check,
    facts=moved,
    measure=timing.one_by_one,
)
