"""From the causal backward pass to the tuned one, one change after the other.

All but the published tuned file have tiles of 64 by 64 and two stages in both kernels.
One step goes back: to eight warps, for what four are worth.
"""

from benchmarks import timing
from benchmarks.part import Part
from benchmarks.parts.attention import TYPICAL
from benchmarks.parts.backward import Gradients, check, credited, normal, ours

CAUSAL, TUNED = "backward/causal_backward.py", "backward/backward_tuned.py"
EIGHT_WARPS = {
    '"num_warps": 4 if head_dim * q.element_size() <= 256 else 8': '"num_warps": 8'
}
LOG2_E = "1.4426950408889634"
BASE_2 = {
    "input_precision=INPUT_PRECISION) * scale": (
        f"input_precision=INPUT_PRECISION) * (scale * {LOG2_E})"
    ),
    'tl.exp(s - tl.where(lse == float("-inf"), float("inf"), lse))': (
        f'tl.exp2(s - tl.where(lse == float("-inf"), float("inf"), lse * {LOG2_E}))'
    ),
}
LONGEST_FIRST = {
    "start_m = tl.program_id(0) * BLOCK_M": (
        "start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M"
    )
}
TILE = 64, 64, 4, 2  # of the causal file

# The package's `backward` is hidden as soon as the list of that name is loaded.
PART = Part(
    shapes=[each for each in TYPICAL if each.dtype != "float32"],
    own=ours(CAUSAL, TUNED)
    | {
        "causal_backward, 8 warps": Gradients(CAUSAL, EIGHT_WARPS),
        "causal_backward + base 2": Gradients(CAUSAL, BASE_2),
        "causal_backward + base 2, last block first": Gradients(
            CAUSAL, BASE_2 | LONGEST_FIRST
        ),
        "backward_tuned, 64 x 64, 4 warps": Gradients(
            TUNED, options={"tiles": {"dq": TILE, "dkdv": TILE}}
        ),
    },
    inputs=normal,
    check=check,
    facts=credited,
    measure=timing.one_by_one,
    against={"times_causal": CAUSAL},
)
