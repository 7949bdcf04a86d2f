"""Medians of times, CUDA graphs, and what a launch takes of the GPU."""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.testing import do_bench

DEVICE = "cuda"
ROUND = 2**31  # bytes to read in turn, so that none of them is in a cache
ROUNDS = 2
# Milliseconds of a turn. After a kernel that draws much power the clock is low for
# 100 ms. The pause lets it rise, the warm-up brings it to where the kernel keeps it.
PAUSE, WARM_UP, TIMED = 20, 50, 10
ORDER = random.Random()
Calls = Mapping[str, Sequence[Callable[[], object]]]  # of each kernel
Measure = Callable[[Calls], dict[str, dict[str, float]]]


def normal(*shape: int, dtype: str) -> torch.Tensor:
    """Fresh normal values."""
    return torch.randn(shape, device=DEVICE, dtype=getattr(torch, dtype))


def itemsize(shape: SimpleNamespace) -> int:
    """Bytes of a number of its dtype."""
    return getattr(torch, shape.dtype).itemsize


def medians(
    functions: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, float]:
    """Seconds that a call of each function takes on the GPU: the median of the rounds.

    In each round all of them have a turn, so that a GPU that warms up slows all alike.
    What follows on a kernel that draws much power comes out slower, by up to a fifth
    without the pause and the warm-up, and half a percent with them. The order is
    shuffled, so that it is not always the same kernel that pays. Whoever seeds ORDER
    can repeat a run.

    A turn is the median of its calls, before each of which the caches are emptied.
    """
    names = list(functions)
    turns: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in ORDER.sample(names, len(names)):
            torch.cuda.synchronize()
            time.sleep(PAUSE / 1e3)
            turn = do_bench(functions[name], WARM_UP, TIMED, return_mode="median")
            turns[name].append(turn / 1e3)
    return {name: statistics.median(found) for name, found in turns.items()}


def graph(calls: Sequence[Callable[[], object]]) -> Callable[[], None]:
    """The calls as one CUDA graph, which takes no time of the CPU between them.

    Each has run before: nothing may be compiled or tuned in a graph. The graph has the
    addresses of tensors that the calls hold, so it keeps the calls.
    """
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for call in calls:
            call()
    return partial(lambda calls: captured.replay(), calls)


def tune_briefly() -> None:
    """Let the autotuner time each configuration for 20 milliseconds, not for 100."""
    Autotuner.do_bench = lambda self, call, quantiles: do_bench(
        call, warmup=5, rep=20, quantiles=quantiles
    )


def in_graphs(calls: Calls) -> dict[str, dict[str, float]]:
    """The time of each kernel's call, in a graph: else a short one is Python's."""
    times = medians({name: graph(turns) for name, turns in calls.items()})
    return {name: {"seconds": times[name] / len(calls[name])} for name in times}


def one_by_one(calls: Calls) -> dict[str, dict[str, float]]:
    """The same of long calls, whose results would fill the GPU if graphs kept them."""
    times = medians({name: call for name, (call,) in calls.items()})
    return {name: {"seconds": seconds} for name, seconds in times.items()}


def peaks(calls: Calls) -> dict[str, dict[str, float]]:
    """The most bytes that each call has allocated at a time, its result included."""
    found = {}
    for name, (call,) in calls.items():
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        found[name] = {"bytes": torch.cuda.max_memory_allocated() - before}
    return found


@contextmanager
def launches() -> Iterator[list[dict[str, Any]]]:
    """The Triton kernels launched inside, and what they take of a multiprocessor.

    `constants` are the compile-time constants that a launch names, `times` says how
    many launches were alike.
    """
    found: list[dict[str, Any]] = []
    original = JITFunction.run

    def run(self: JITFunction, *args: Any, **kwargs: Any) -> Any:
        compiled = original(self, *args, **kwargs)
        if compiled is not None and not kwargs.get("warmup"):
            compiled._init_handles()
            taken = {
                "name": self.__name__,
                "registers": compiled.n_regs,
                "spills": compiled.n_spills,
                "shared_bytes": compiled.metadata.shared,
                "warps": compiled.metadata.num_warps,
                "stages": compiled.metadata.num_stages,
                "programs_per_multiprocessor": occupancy(compiled),
                "constants": {
                    key: value
                    for key, value in kwargs.items()
                    if key.isupper() and isinstance(value, int | float | str)
                },
            }
            alike = [each for each in found if taken.items() <= each.items()]
            if not alike:
                found.append(taken | {"times": 0})
            (alike or found)[-1]["times"] += 1
        return compiled

    JITFunction.run = run
    try:
        yield found
    finally:
        JITFunction.run = original


def occupancy(compiled: Any) -> int:
    """How many programs of a compiled kernel one multiprocessor holds."""
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    warps = compiled.metadata.num_warps
    # Registers are handed out to a warp in units of 256.
    per_warp = -(-compiled.n_regs * gpu.warp_size // 256) * 256
    # A program takes 1 KiB of shared memory besides its own.
    shared = compiled.metadata.shared + 1024
    return min(
        32,
        gpu.regs_per_multiprocessor // per_warp // warps,
        gpu.max_threads_per_multi_processor // (warps * gpu.warp_size),
        gpu.shared_memory_per_multiprocessor // shared,
    )
