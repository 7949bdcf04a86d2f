"""Compile everything in many processes, because compiling takes longer than timing.

Triton and PyTorch keep what they compile on the disk, where the run finds it.
"""

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from benchmarks import parts, timing
from benchmarks.part import Part, Shape
from benchmarks.peers import COMPILED

WORKERS = 14  # each fills a part of the GPU
LENGTHS = {"rows", "batch", "seq", "window", "fill"}  # nothing is compiled for them


def compile_all(wanted: Iterable[Part]) -> None:
    """Compile what these lists need. What fails here, fails and is told later too."""
    start = time.perf_counter()
    workers = max(1, min(WORKERS, (os.cpu_count() or 1) - 1))
    context = multiprocessing.get_context("spawn")
    # As the run itself does, and so that it finds what was compiled.
    off = partial(torch.set_grad_enabled, False)
    found = [task for part in wanted for task in tasks(part)]
    found.sort(key=lambda task: -getattr(task[2], "head_dim", 0))  # the longest first
    with ProcessPoolExecutor(workers, context, off) as pool:
        pending = {pool.submit(compile_one, *task): task for task in found}
        for done in as_completed(pending):
            if error := done.exception():
                print(f"not compiled beforehand: {pending[done][:2]}: {error!s:.200}")
    seconds = time.perf_counter() - start
    print(f"compiled {len(pending)} things in {seconds:.0f} s", flush=True)


def tasks(part: Part) -> Iterator[tuple[str, str, Shape]]:
    """List, kernel and shape: some peers for each shape, ours for each kind."""
    seen = set()
    for shape in part.shapes:
        kind = tuple(item for item in vars(shape).items() if item[0] not in LENGTHS)
        for kernel in part.kernels(shape):
            new = kernel in part.own and (kernel, kind) not in seen
            if new or kernel in COMPILED:
                seen.add((kernel, kind))
                yield part.name, kernel, shape


def compile_one(name: str, kernel: str, shape: Shape) -> None:
    """Make and call one kernel. Ours are not launched, and nothing is tuned."""
    part = parts.load(name)
    timing.ROUND = 1  # nobody looks at the values
    (inputs,) = part.inputs(shape)
    if kernel in part.own:
        # PyTorch's compiler, if it ran in this process, left its own assembler behind.
        os.environ.pop("TRITON_PTXAS_PATH", None)
        without_launching()
    part.make(kernel, inputs)()


def without_launching() -> None:
    """In this process, kernels are compiled and not launched, and nothing is tuned."""
    original = JITFunction.run

    def run(self: JITFunction, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs | {"warmup": True})

    def do_bench(self: Autotuner, call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    JITFunction.run, Autotuner.do_bench = run, do_bench
