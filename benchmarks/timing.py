"""What every benchmark shares: medians, ceilings, resources, the record."""

import hashlib
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from triton.runtime.jit import JITFunction
from triton.testing import do_bench

ROOT = Path(__file__).resolve().parent.parent


def median(function: Callable[[], object], milliseconds: int = 25) -> float:
    """Seconds that one call takes on the GPU, the median of about `milliseconds`.

    The caches are emptied before each call.
    """
    quarter = max(1, milliseconds // 4)
    return do_bench(function, quarter, milliseconds, return_mode="median") / 1e3


def medians(
    functions: dict[str, Callable[[], object]], repeats: int = 3
) -> dict[str, float]:
    """Seconds of each function: the median of `repeats` medians.

    The functions take turns, so that a GPU that warms up slows all of them alike.
    """
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(median(function))
    return {name: statistics.median(found) for name, found in times.items()}


def graph(calls: list[Callable[[], object]]) -> Callable[[], None]:
    """The calls as one CUDA graph, which takes no time of the CPU between them.

    Each has run before: nothing may be compiled or tuned in a graph. The graph has the
    addresses of tensors that the calls hold, so it keeps the calls.
    """
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for call in calls:
            call()
    return partial(lambda calls: captured.replay(), calls)


def inputs(rows: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    """[rows, cols] of fresh normal values."""
    return torch.randn((rows, cols), device="cuda", dtype=dtype)


def copy_ceiling(size: int = 2**30) -> float:
    """Bytes per second of a copy of `size` bytes on the device: read plus written."""
    x = inputs(1, size // 4, torch.float32)
    y = torch.empty_like(x)
    return 2 * size / medians({"copy": lambda: y.copy_(x)})["copy"]


def matmul_ceiling(size: int = 8192) -> float:
    """Operations per second of a product of two square bf16 matrices."""
    a, b = (inputs(size, size, torch.bfloat16) for _ in range(2))
    return 2 * size**3 / medians({"matmul": lambda: a @ b})["matmul"]


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
            for known in found:
                if known == taken | {"times": known["times"]}:
                    known["times"] += 1
                    break
            else:
                found.append(taken | {"times": 1})
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


def sha256(path: str) -> str:
    """The hash of a file of the repository."""
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def write(record: dict[str, Any], path: Path) -> None:
    """Write a record as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
