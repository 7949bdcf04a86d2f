"""The ceilings that speeds are compared with, and the state of the GPU meanwhile.

Both vary within a run: with the temperature, the clocks, and the power that the GPU may
draw. So they are taken again and again.
"""

import statistics
import time
from functools import partial
from typing import Any

import torch

from benchmarks import timing
from verified_docs.evidence import machine

COPIED = 2**30  # bytes
# Rows, columns and summed length of the products: the run shows which is fastest.
PRODUCTS = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 16384),
    (16384, 8192, 4096),
    (16384, 16384, 8192),
)
STATE = {
    "sm_clock": ("clocks.sm", "MHz"),
    "memory_clock": ("clocks.mem", "MHz"),
    "temperature": ("temperature.gpu", "°C"),
}
SECONDS = 10  # between two looks


class Ceilings:
    """What was seen so far."""

    def __init__(self) -> None:
        self.speeds: dict[str, list[float]] = {}
        self.states: dict[str, list[float]] = {}
        self.last = float("-inf")

    def look(self) -> None:
        """Measure both ceilings and ask for the state, unless it was done just now."""
        if time.monotonic() < self.last + SECONDS:
            return
        x = timing.normal(COPIED // 4, dtype="float32")
        work = {"copy": 2 * COPIED}
        calls = {"copy": partial(torch.empty_like(x).copy_, x)}
        for m, n, k in PRODUCTS:
            a, b = (timing.normal(*s, dtype="bfloat16") for s in ((m, k), (k, n)))
            name = f"{m} x {n} x {k}"
            work[name], calls[name] = 2 * m * n * k, partial(torch.matmul, a, b)
        for name, seconds in timing.medians(calls, rounds=1).items():
            self.speeds.setdefault(name, []).append(work[name] / seconds)
        for _ in range(50):  # the GPU is at work while it is asked
            a @ b
        fields = {name: field for name, (field, _) in STATE.items()}
        for name, value in machine.nvidia_smi(fields).items():
            self.states.setdefault(name, []).append(float(value.split()[0]))
        torch.cuda.synchronize()
        self.last = time.monotonic()

    def facts(self) -> dict[str, Any]:
        """Of the copy and of the fastest product: the median, and how far it varied."""
        medians = {name: statistics.median(all) for name, all in self.speeds.items()}
        products = medians.keys() - {"copy"}
        best = max(products, key=lambda name: medians[name])
        seen = {"copy": self.speeds["copy"], "matmul": self.speeds[best]}
        return {
            "copy": medians["copy"],
            "matmul": medians[best],
            "product": best,
            "looks": len(seen["copy"]),
            "lowest": {name: min(all) for name, all in seen.items()},
            "highest": {name: max(all) for name, all in seen.items()},
        }

    def state(self) -> dict[str, str]:
        """From where to where the clocks and the temperature went."""
        return {
            name: f"{min(values):.0f} to {max(values):.0f} {STATE[name][1]}"
            for name, values in self.states.items()
        }
