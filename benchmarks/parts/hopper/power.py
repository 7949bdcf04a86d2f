"""The clock and the power of the GPU while a kernel runs on end.

A GPU that draws as much as it may lowers its clock. How fast a kernel then is depends
on the energy that it takes.
"""

from typing import Any

import torch

from benchmarks import peers
from benchmarks.calls import Call
from benchmarks.part import published
from benchmarks.parts.attention import PROTOCOL, attention
from benchmarks.timing import Calls
from verified_docs.evidence import machine

BURST = 0.4  # seconds
SETTLE = 2  # bursts until the clock is where the kernel keeps it
FIELDS = {"megahertz": "clocks.sm", "watts": "power.draw.instant"}


def measure(calls: Calls) -> dict[str, dict[str, Any]]:
    """Of each kernel, on its own: the time and the energy of a call, and the state."""
    return {name: settled(call) for name, (call,) in calls.items()}


def settled(call: Call) -> dict[str, Any]:
    """Means over the last burst of calls."""
    times = round(BURST / burst(call, 10)[0])
    for _ in range(SETTLE):
        burst(call, times)
    seconds, states = burst(call, times)
    found = {name: sum(s[name] for s in states) / len(states) for name in FIELDS}
    return {"seconds": seconds, **found, "millijoules": found["watts"] * seconds * 1e3}


def burst(call: Call, times: int) -> tuple[float, list[dict[str, float]]]:
    """Seconds of a call among so many, and what was seen of the GPU meanwhile."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        call()
    end.record()
    states = []
    while not end.query():
        told = machine.nvidia_smi(FIELDS)
        states.append({name: float(value.split()[0]) for name, value in told.items()})
    # The last one may have been seen after the end.
    return start.elapsed_time(end) / 1e3 / times, states[:-1]


PART = attention(
    shapes=[each for each in PROTOCOL if each.seq == 8192],
    own=published("attention/flash2_descriptors.py", "hopper/gluon_persistent.py"),
    peers={"sdpa-cudnn": peers.sdpa_cudnn, "fa3-fwd": peers.fa3},
    measure=measure,
    ceiling="matmul",
)
