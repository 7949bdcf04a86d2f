"""What NVIDIA's profiler counts of the tuned backward pass where it is furthest behind.

Beside it are the libraries that it is behind. The times are taken as in the list
`backward`. Then `ncu` runs this file as a program, which calls each kernel once more.
A call is several launches: its counts are sums, its rates are means over all of them,
and what a thread or a program has is that of the longest. Our own launches are told one
by one as well.
"""

import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks import peers, timing
from benchmarks.part import Part
from benchmarks.parts.backward import (
    PROTOCOL,
    check,
    credited,
    derived,
    normal,
    ours,
)
from benchmarks.parts.hopper.profile import COUNTED, number
from benchmarks.timing import Calls

TUNED = "backward/backward_tuned.py"
SEQS = {64: 16384, 128: 8192, 256: 16384}  # by head_dim
SUMMED = {"cycles", "instructions", "l2_bytes", "dram_bytes"}
OF_THE_LONGEST = {"registers", "program_bytes"}
OURS = "dq_kernel", "dkdv_kernel"
Counts = dict[str, Any]


@triton.jit
def next_call(ptr):
    """Launched before each call, so that one can tell where its launches begin."""
    tl.store(ptr, 0.0)


def measure(calls: Calls) -> dict[str, Counts]:
    """The times, and then the counts of one call of each."""
    found: dict[str, Counts] = dict(timing.one_by_one(calls))
    given = calls[TUNED][0].keywords
    for name in found:
        found[name] |= counts()[name, given["q"].shape[-1], given["causal"]]
    return found


@cache
def counts() -> dict[tuple[str, int, bool], Counts]:
    """What the profiler counts, by kernel, head_dim and mask: of all, in one go."""
    done = subprocess.run(
        [
            *("ncu", "--profile-from-start", "off", "--clock-control", "none"),
            *("--csv", "--page", "raw", "--print-units", "base"),
            *("--metrics", ",".join(COUNTED.values())),
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
    found = list(by_call(rows))
    if done.returncode or len(found) != len(called) or not all(found):
        said = done.stdout[-500:] + done.stderr[-500:]
        raise RuntimeError(f"ncu saw {len(found)} calls, not {len(called)}: {said}")
    return {
        key: together(launches) for key, launches in zip(called, found, strict=True)
    }


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


def together(launches: list[Counts]) -> Counts:
    """The counts of a call, and of ours also those of each kernel."""

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
        if each["name"] in OURS:
            kernel = each["name"].removesuffix("_kernel")
            found |= {f"{key}_{kernel}": each[key] for key in COUNTED}
    return found


# The package's `backward` is hidden as soon as the list of that name is loaded.
PART = Part(
    shapes=[each for each in PROTOCOL if each.seq == SEQS[each.head_dim]],
    inputs=normal,
    own=ours(TUNED),
    peers={
        "sdpa-flash": derived(peers.sdpa_flash),
        "sdpa-cudnn": derived(peers.sdpa_cudnn),
    },
    check=check,
    facts=credited,
    measure=measure,
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_cudnn": "sdpa-cudnn"},
)


def main() -> None:
    """Call each kernel where the profiler sees it, and before that to compile it."""
    mark = torch.zeros(1, device=timing.DEVICE)
    for shape in PART.shapes:
        (inputs,) = PART.inputs(shape)
        for name in PART.kernels(shape):
            call = PART.make(name, inputs)
            call()
            torch.cuda.profiler.start()
            next_call[(1,)](mark)
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    with torch.no_grad():
        main()
