"""Layer norm's backward pass of wide rows with more and fewer warps for a chunk.

Four programs fit on a multiprocessor each time, with as many columns each: a thread of
two warps may have 255 registers, one of four 128, one of eight 64.
"""

from benchmarks import peers, timing
from benchmarks.part import Part
from benchmarks.parts.companions import norms
from benchmarks.parts.companions.norm_backward import (
    WIDE,
    Backward,
    check,
    matrices,
    moved,
)


def warps(count: int) -> Backward:
    """So many warps for the 2048 columns of a chunk."""
    old = "num_warps=max(1, min(16, chunk_cols // 1024)),"
    new = f"num_warps={count}, maxnreg={min(255, 65536 // 4 // 32 // count)},"
    return Backward(WIDE, {old: new})


PART = Part(
    shapes=[s for s in norms() if s.norm == "layer" and s.cols >= 16384],
    inputs=matrices,
    own={f"layer_norm_backward_wide, {n} warps": warps(n) for n in (2, 4, 8)},
    peers={"copy": peers.copy},
    check=check,
    facts=moved,
    measure=timing.one_by_one,
)
