"""How long the CPU takes to launch forward and backward, whatever the GPU then takes.

Where the kernels take less than that, the GPU waits for Python.
"""

import statistics
import time
from dataclasses import replace

import torch

from benchmarks.parts.hopper.training import PART as TRAINING
from benchmarks.timing import Calls

RUNS = 50


def measure(calls: Calls) -> dict[str, dict[str, float]]:
    """The median of the times from the call to its return, while the GPU is idle."""
    found = {}
    for name, (call,) in calls.items():
        times = []
        for _ in range(RUNS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        found[name] = {"cpu_seconds": statistics.median(times)}
    return found


PART = replace(
    TRAINING,
    shapes=[each for each in TRAINING.shapes if each.seq == 1024],
    measure=measure,
    ceiling=None,
    against={},
)
