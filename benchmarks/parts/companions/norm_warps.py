"""Layer norm's backward pass of wide rows with more and fewer warps for a chunk.

A thread has as many columns each time, and as many registers: two warps have twice the
columns of one, and half as many programs fit on a multiprocessor.
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
    """So many warps for a chunk, each with 2 KiB of a row."""
    chunk = {"chunk_cols or 2048 //": f"chunk_cols or {2048 * count} //"}
    return Backward(
        WIDE,
        chunk
        | {"(12, 168)": f"({12 // count}, 168)", "(8, 255)": f"({8 // count}, 255)"},
    )


PART = Part(
    shapes=[s for s in norms() if s.norm == "layer" and s.cols >= 16384],
    inputs=matrices,
    own={f"layer_norm_backward_wide, {n} warps": warps(n) for n in (1, 2, 4)},
    peers={"copy": peers.copy},
    check=check,
    facts=moved,
    measure=timing.one_by_one,
)
