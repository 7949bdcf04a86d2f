"""`python -m benchmarks.attention`: the attention kernels and their peers, timed.

The parts: the forward pass, the same in fp8, the rungs that take a single head, one
query against a cache, the sliding window, packed sequences, and the memory that a call
takes. FLOPs are those of the two matrix products, half of them if causal, whatever a
kernel computes.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from benchmarks import timing
from benchmarks.attention import decode, forward, fp8, memory, varlen, window
from benchmarks.attention.run import PARTS, Disagree, Run, stop
from benchmarks.attention.warm import warm
from verified_docs import layout
from verified_docs.evidence import machine


def main() -> int:
    """Measure, print, and write `attention.json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attention")
    parser.add_argument(
        "--record", type=Path, help="the folder of the record; records/<gpu> if absent"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        help="parts to measure; they join the record if it is of the same environment "
        "and files",
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        return stop("no GPU here; nothing measured")
    environment = machine.facts(timing.ROOT)
    folder = arguments.record
    folder = folder or timing.ROOT / "records" / layout.slug(environment["gpu"])
    parts = tuple(part for part in PARTS if part in arguments.only)
    try:
        run = Run(folder, environment, parts)
    except Disagree as error:
        return stop(str(error))

    warm(parts)
    start = time.perf_counter()
    ceilings = run.record["ceilings"]
    if {"forward", "fp8"} & set(parts):
        ceilings["matmul"] = timing.matmul_ceiling()
    if "forward" in parts:
        forward.forward(run, ceilings["matmul"])
    if "fp8" in parts:
        fp8.fp8(run, ceilings["matmul"])
    if "head" in parts:
        forward.head(run)
    if "decode" in parts:
        ceilings["copy"] = timing.copy_ceiling()
        decode.decode(run, ceilings["copy"])
    if "window" in parts:
        window.window(run)
    if "varlen" in parts:
        varlen.varlen(run)
    if "memory" in parts:
        memory.memory(run)
    print(f"measured in {time.perf_counter() - start:.0f} s")
    return run.finish()


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main())
