"""`python -m benchmarks [part ...]`: time the kernels and their peers, and record it.

A part is a folder below `parts/`, such as softmax, or one list of it, such as
attention/decode. The other lists of a record stay while they are of the same machine
and files.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import torch

from benchmarks import parts, peers, timing
from benchmarks.beforehand import compile_all
from benchmarks.run import ROOT, Run
from verified_docs import layout
from verified_docs.evidence import machine


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("parts", nargs="*", help="all if none is named")
    parser.add_argument("--records", default=layout.RECORDS, help="the folder of all")
    parser.add_argument(
        "--quick", action="store_true", help="the first shape of each list; no record"
    )
    wanted = parser.parse_args(arguments)
    known = parts.names()
    if lost := [part for part in wanted.parts if not parts.within(known, [part])]:
        parser.error(f"there is no part {lost[0]}: {', '.join(known)}")
    gpu = machine.gpu_name()
    if gpu is None:
        print("benchmarks: no GPU here; nothing measured", file=sys.stderr)
        return 1
    lists = [parts.load(name) for name in parts.within(known, wanted.parts or known)]
    if wanted.quick:
        lists = [replace(part, shapes=part.shapes[:1]) for part in lists]
        wanted.records = tempfile.mkdtemp()
    facts, versions, good = machine.facts(ROOT), peers.versions(), True
    with torch.no_grad():
        compile_all(lists)
        timing.tune_briefly()
        for record, of in groupby(lists, key=lambda part: part.name.partition("/")[0]):
            start = time.perf_counter()
            path = ROOT / layout.benchmark_file(gpu, record, wanted.records)
            run = Run(path, facts, versions)
            good &= all([run.fill(part) for part in of])
            print(f"{record}: measured in {time.perf_counter() - start:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
