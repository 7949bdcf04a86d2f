"""What NVIDIA's profiler counts of each rung of the forward pass, beside its time.

The times are taken as in the list `forward`. Then `ncu` runs this file as a program,
which calls each kernel once more. Small kernels that go with some are left out.
"""

import csv
import subprocess
import sys
from functools import cache
from typing import Any

import torch

from benchmarks import peers, timing
from benchmarks.part import published
from benchmarks.parts.attention import PROTOCOL, attention
from benchmarks.timing import Calls

KERNELS = "regex:attention_kernel|flash_fwd_kernel|cudnn|device_kernel"
OF_PEAK = "avg.pct_of_peak_sustained_active"
COUNTED = {
    "cycles": "sm__cycles_active.avg",
    "instructions": "smsp__inst_executed.sum",
    "registers": "launch__registers_per_thread",
    "program_bytes": "launch__shared_mem_per_block",
    "l2_bytes": "lts__t_bytes.sum",
    "dram_bytes": "dram__bytes.sum",
    "warps": "sm__warps_active.avg.per_cycle_active",
    "fraction_of_tensor_cycles": f"sm__pipe_tensor_cycles_active.{OF_PEAK}",
    "fraction_of_exp_cycles": f"sm__inst_executed_pipe_xu.{OF_PEAK}",
    "fraction_of_issue_slots": f"smsp__issue_active.{OF_PEAK}",
}
# How many warps of a scheduler wait for a reason, for each instruction that it issues.
STALLS = (
    "barrier", "dispatch_stall", "gmma", "long_scoreboard", "math_pipe_throttle",
    "mio_throttle", "not_selected", "short_scoreboard", "sleeping", "wait",
)  # fmt: skip
COUNTED |= {
    f"stalls_{reason}": f"smsp__average_warps_issue_stalled_{reason}_per_issue_active"
    ".ratio"
    for reason in STALLS
}


def measure(calls: Calls) -> dict[str, dict[str, Any]]:
    """The times, and then the counts of one call of each."""
    found: dict[str, dict[str, Any]] = dict(timing.in_graphs(calls))
    given = next(iter(calls.values()))[0].keywords
    for name in found:
        found[name] |= counts()[name, given["q"].shape[-1], given["causal"]]
    return found


@cache
def counts() -> dict[tuple[str, int, bool], dict[str, float]]:
    """What the profiler counts, by kernel, head_dim and mask: of all, in one go."""
    done = subprocess.run(
        [
            *("ncu", "--profile-from-start", "off", "--clock-control", "none"),
            *("--csv", "--page", "raw", "--print-units", "base"),
            *("--kernel-name", KERNELS, "--metrics", ",".join(COUNTED.values())),
            *(sys.executable, "-m", __name__),
        ],
        capture_output=True,
        text=True,
    )
    _, *rows = csv.DictReader(  # below the names stand the units
        line for line in done.stdout.splitlines() if line.startswith('"')
    )
    called = [
        (name, shape.head_dim, shape.causal)
        for shape in PART.shapes
        for name in PART.kernels(shape)
    ]
    if done.returncode or len(rows) != len(called):
        said = done.stdout[-500:] + done.stderr[-500:]
        raise RuntimeError(f"ncu saw {len(rows)} launches, not {len(called)}: {said}")
    return {
        key: {name: number(name, row[of]) for name, of in COUNTED.items()}
        for key, row in zip(called, rows, strict=True)
    }


def number(key: str, told: str) -> float:
    """What the profiler told; fractions in percent."""
    value = float(told.replace(",", ""))
    return value / 100 if key.startswith("fraction_of") else value


PART = attention(
    shapes=[each for each in PROTOCOL if each.seq == 4096],
    own=published("attention/flash2.py", takes=lambda shape: not shape.causal)
    | published("attention/flash2_causal.py", takes=lambda shape: shape.causal)
    | published("attention/flash2_tuned.py", "attention/flash2_descriptors.py")
    | published(
        "hopper/gluon_flash.py",
        "hopper/gluon_specialised.py",
        "hopper/gluon_overlapped.py",
        takes=lambda shape: not shape.causal,
    )
    | published("hopper/gluon_causal.py", "hopper/gluon_persistent.py"),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-cudnn": peers.sdpa_cudnn,
        "fa3-fwd": peers.fa3,
    },
    measure=measure,
    ceiling="matmul",
    against={"times_fa3": "fa3-fwd"},
)


def main() -> None:
    """Call each kernel where the profiler sees it, and before that to tune it."""
    timing.tune_briefly()
    for shape in PART.shapes:
        (inputs,) = PART.inputs(shape)
        for name in PART.kernels(shape):
            call = PART.make(name, inputs)
            call()
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    with torch.no_grad():
        main()
