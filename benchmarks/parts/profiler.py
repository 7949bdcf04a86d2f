"""What NVIDIA's profiler counts of each kernel of a list, beside its time.

The times are taken without it. Then `ncu` runs this file as a program, which calls each
kernel of the list once more. A call may be several launches: its counts are sums, its
rates are means over all of them, and what a thread or a program has is that of the
longest.
"""

import csv
import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks import timing
from benchmarks.part import Part
from benchmarks.timing import Calls, Measure

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
SUMMED = {"cycles", "instructions", "l2_bytes", "dram_bytes"}
OF_THE_LONGEST = {"registers", "program_bytes"}
Counts = dict[str, Any]
Key = tuple[str, int, int, bool]  # kernel, head_dim, seq, causal


@triton.jit
def next_call(ptr):
    """Launched before each call, so that one can tell where its launches begin."""
    tl.store(ptr, 0.0)


def beside(times: Measure, module: str, apart: tuple[str, ...] = ()) -> Measure:
    """Measures times, and the counts of one call of each kernel.

    Args:
        times: measures the times.
        module: the name of that which holds the list.
        apart: the launches that are told one by one as well, by their names.
    """

    def measure(calls: Calls) -> dict[str, Counts]:
        found: dict[str, Counts] = dict(times(calls))
        given = next(iter(calls.values()))[0].keywords
        seq, head_dim = given["q"].shape[-2:]
        for name in found:
            found[name] |= counts(module, apart)[name, head_dim, seq, given["causal"]]
        return found

    return measure


@cache
def counts(module: str, apart: tuple[str, ...]) -> dict[Key, Counts]:
    """What the profiler counts of a list: of all, in one go."""
    done = subprocess.run(
        [
            *("ncu", "--profile-from-start", "off", "--clock-control", "none"),
            *("--csv", "--page", "raw", "--print-units", "base"),
            *("--metrics", ",".join(COUNTED.values())),
            *(sys.executable, "-m", __name__, module),
        ],
        capture_output=True,
        text=True,
    )
    _, *rows = csv.DictReader(  # below the names stand the units
        line for line in done.stdout.splitlines() if line.startswith('"')
    )
    part = listed(module)
    called = [
        (name, shape.head_dim, shape.seq, shape.causal)
        for shape in part.shapes
        for name in part.kernels(shape)
    ]
    found = list(by_call(rows))
    if done.returncode or len(found) != len(called) or not all(found):
        said = done.stdout[-500:] + done.stderr[-500:]
        raise RuntimeError(f"ncu saw {len(found)} calls, not {len(called)}: {said}")
    return {
        key: together(launches, apart)
        for key, launches in zip(called, found, strict=True)
    }


def listed(module: str) -> Part:
    """The list that a module holds."""
    part: Part = importlib.import_module(module).PART
    return part


def by_call(rows: Iterable[dict[str, str]]) -> Iterator[list[Counts]]:
    """The launches of each call, in order."""
    launches: list[Counts] | None = None
    for row in rows:
        if next_call.__name__ in row["Kernel Name"]:
            if launches is not None:
                yield launches
            launches = []
        elif launches is not None:
            counted = {name: number(name, row[of]) for name, of in COUNTED.items()}
            launches.append({"name": row["Kernel Name"]} | counted)
    if launches is not None:
        yield launches


def number(key: str, told: str) -> float:
    """What the profiler told; fractions in percent."""
    value = float(told.replace(",", ""))
    return value / 100 if key.startswith("fraction_of") else value


def together(launches: list[Counts], apart: Iterable[str] = ()) -> Counts:
    """The counts of a call, and also those of the launches that are told apart."""

    def mean(key: str, over: str) -> float:
        total = sum(each[over] for each in launches)
        return sum(each[key] * each[over] for each in launches) / total

    longest = max(launches, key=lambda each: each["cycles"])
    found: Counts = {}
    for key in COUNTED:
        if key in SUMMED:
            found[key] = sum(each[key] for each in launches)
        elif key in OF_THE_LONGEST:
            found[key] = longest[key]
        else:
            over = "instructions" if key.startswith("stalls") else "cycles"
            found[key] = mean(key, over)
    for each in launches:
        if each["name"] in apart:
            kernel = each["name"].removesuffix("_kernel")
            found |= {f"{key}_{kernel}": each[key] for key in COUNTED}
    return found


def main(module: str) -> None:
    """Call each kernel where the profiler sees it, and before that to tune it."""
    timing.tune_briefly()
    part = listed(module)
    mark = torch.zeros(1, device=timing.DEVICE)
    for shape in part.shapes:
        inputs, *_ = part.inputs(shape)
        for name in part.kernels(shape):
            call = part.make(name, inputs)
            call()
            torch.cuda.profiler.start()
            next_call[(1,)](mark)
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    with torch.no_grad():
        main(sys.argv[1])
