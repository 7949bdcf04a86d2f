"""Compile everything in many processes, because compiling takes longer than timing.

Triton and PyTorch keep what they compile on the disk, where the run finds it.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from benchmarks import parts, timing
from benchmarks.part import Shape, kind

WORKERS = 14  # each fills a part of the GPU


def compile_all(names: Sequence[str]) -> None:
    """Compile what these parts need. What fails here, fails and is told later too."""
    start = time.perf_counter()
    workers = max(1, min(WORKERS, (os.cpu_count() or 1) - 1))
    context = multiprocessing.get_context("spawn")
    # As the run itself does, and so that it finds what was compiled.
    off = partial(torch.set_grad_enabled, False)
    with ProcessPoolExecutor(workers, context, off) as pool:
        pending = {pool.submit(compile_one, *task): task for task in tasks(names)}
        for done in as_completed(pending):
            if error := done.exception():
                print(f"not compiled beforehand: {pending[done][:2]}: {error!s:.200}")
    seconds = time.perf_counter() - start
    print(f"compiled {len(pending)} things in {seconds:.0f} s", flush=True)


def tasks(names: Sequence[str]) -> list[tuple[str, str, Shape]]:
    """Part, kernel and shape of what there is to compile, the longest first."""
    found = [(name, *task) for name in names for task in of(name)]
    return sorted(found, key=lambda task: -getattr(task[2], "head_dim", 0))


def of(name: str) -> Iterator[tuple[str, Shape]]:
    """What a list compiles: some peers for each shape, our kernels for each kind."""
    part, seen = parts.load(name), set()
    for shape in part.shapes():
        ours = () if kind(shape) in seen else part.own
        seen.add(kind(shape))
        for kernel in (*part.compiled, *ours):
            yield kernel, shape


def compile_one(name: str, kernel: str, shape: Shape) -> None:
    """Make and call one kernel. Ours are not launched, and nothing is tuned."""
    part = parts.load(name)
    timing.ROUND = 1  # nobody looks at the values
    trial = part.trial(shape)
    if kernel in part.own:
        # PyTorch's compiler, if it ran in this process, left its own assembler behind.
        os.environ.pop("TRITON_PTXAS_PATH", None)
        without_launching()
    make = (trial.own | trial.peers).get(kernel)
    made = make() if make else []
    for call in made[:1] if isinstance(made, list) else [made]:
        call()


def without_launching() -> None:
    """In this process, kernels are compiled and not launched, and nothing is tuned."""
    original = JITFunction.run

    def run(self: JITFunction, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs | {"warmup": True})

    def do_bench(self: Autotuner, call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    JITFunction.run, Autotuner.do_bench = run, do_bench
