"""From the causal backward pass to the tuned one: its warps alone, and all but them.

All but the published file have tiles of 64 by 64 and two stages in both kernels, and
four warps or eight.
"""

from benchmarks import timing
from benchmarks.part import Part
from benchmarks.parts.attention import TYPICAL
from benchmarks.parts.backward import Gradients, check, credited, normal, ours

CAUSAL, TUNED = "backward/causal_backward.py", "backward/backward_tuned.py"
FOUR_WARPS = {'"num_warps": 4 if head_dim <= 64 else 8': '"num_warps": 4'}


def tiled(warps: int) -> Gradients:
    """The tuned file with the tile of the causal one."""
    tile = 64, 64, warps, 2
    return Gradients(TUNED, options={"tiles": {"dq": tile, "dkdv": tile}})


# The package's `backward` is hidden as soon as the list of that name is loaded.
PART = Part(
    shapes=[each for each in TYPICAL if each.dtype != "float32"],
    own=ours(CAUSAL, TUNED)
    | {"causal_backward + 4 warps": Gradients(CAUSAL, FOUR_WARPS)}
    | {f"backward_tuned, 64 x 64, {warps} warps": tiled(warps) for warps in (8, 4)},
    inputs=normal,
    check=check,
    facts=credited,
    measure=timing.one_by_one,
    against={"times_causal": CAUSAL},
)
