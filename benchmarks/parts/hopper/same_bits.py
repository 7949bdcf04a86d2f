"""How many of a thousand launches return other bits than the first one did.

All warps of all programs come in another order each time. What a kernel returns may
depend on that only where programs add to one sum.
"""

from typing import Any

import torch

from benchmarks.calls import Inputs
from benchmarks.part import Part, Shape, published
from benchmarks.parts.attention import PROTOCOL
from benchmarks.parts.attention import check as check_output
from benchmarks.parts.backward import check as check_gradients
from benchmarks.parts.backward import normal
from benchmarks.timing import Calls

RUNS = 1000
BACKWARD = "hopper/gluon_backward.py"
FP8 = "hopper/gluon_fp8.py"
NAMES = {2: ("o", "lse"), 3: ("dq", "dk", "dv")}


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Is it right at all? Raises Wrong if not."""
    if name == BACKWARD:
        check_gradients(name, inputs, found)
    else:
        check_output(name, inputs, found, tolerance=0.2 if name == FP8 else 0.02)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """How often it is launched, and in which dtype."""
    return {"runs": RUNS} | ({"dtype": "float8_e4m3fn"} if name == FP8 else {})


def measure(calls: Calls) -> dict[str, dict[str, int]]:
    """Of each result, in how many launches it has other bits than in the first."""
    found = {}
    for name, (call,) in calls.items():
        first = call()
        others = torch.zeros(len(first), dtype=torch.int64, device=first[0].device)
        for _ in range(RUNS):
            again = call()
            for i, (x, y) in enumerate(zip(first, again, strict=True)):
                others[i] += (x.view(torch.uint8) != y.view(torch.uint8)).any()
        names = (f"other_{x}" for x in NAMES[len(first)])
        found[name] = dict(zip(names, others.tolist(), strict=True))
    return found


PART = Part(
    shapes=[each for each in PROTOCOL if each.seq == 2048],
    inputs=normal,
    own=published("hopper/gluon_causal.py", "hopper/gluon_persistent.py", FP8)
    | published(BACKWARD, takes=lambda shape: shape.head_dim <= 128)
    | published(
        "hopper/gluon_flash.py",
        "hopper/gluon_specialised.py",
        "hopper/gluon_overlapped.py",
        takes=lambda shape: not shape.causal,
    ),
    check=check,
    facts=facts,
    measure=measure,
)
