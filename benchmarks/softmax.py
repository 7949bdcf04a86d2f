"""`python -m benchmarks.softmax`: the softmax kernels and their peers, timed together.

Every measurement counts one read and one write of the matrix (the backward pass: two
reads and one write), whatever a kernel really moves.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import timing
from verified_docs import layout
from verified_docs.evidence import machine, records

COLUMNS = (128, 1024, 4096, 16384, 32768, 131072, 1048576)
DTYPES = (torch.float32, torch.bfloat16)
BYTES = 2**30  # of a matrix: many times the L2 cache

# Each kernel of the part, and the longest row that it takes.
KERNELS = {
    "one_row": 65536,
    "three_pass": None,
    "online": None,
    "tree": None,
    "tiles": None,
    "split_row": None,
    "whole_row": 65536,
    "persistent": 65536,
    "long_rows": None,
}
Softmax = Callable[[torch.Tensor], torch.Tensor]


def snippet(name: str) -> Softmax:
    """The function that a file of the part publishes."""
    return importlib.import_module(f"snippets.softmax.{name}").softmax


def kernels(cols: int) -> dict[str, Softmax]:
    """The published kernels that take rows of that length, by the path of the file."""
    return {
        f"softmax/{name}.py": importlib.import_module(
            f"snippets.softmax.{name}"
        ).softmax
        for name, longest in KERNELS.items()
        if longest is None or cols <= longest
    }


def peers(cols: int) -> dict[str, Softmax]:
    """PyTorch, eager and compiled, and Liger where it is installed."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.softmax(x, dim=-1), dynamic=False)
    found: dict[str, Softmax] = {
        "torch.softmax": lambda x: torch.softmax(x, dim=-1),
        "torch.compile": compiled,
    }
    try:
        from liger_kernel.ops.softmax import LigerSoftmaxFunction
    except ImportError:
        return found
    if cols <= 65536:  # it refuses longer rows
        found["liger"] = LigerSoftmaxFunction.apply
    return found


def check(name: str, softmax: Softmax, x: torch.Tensor) -> None:
    """Is the result right at all? (How accurate it is, the tests say.)

    Raises:
        ValueError: the result is wrong.
    """
    rows = x[:: max(1, len(x) // 8)]
    expected = torch.softmax(rows.double(), dim=-1)
    error = (softmax(x)[:: max(1, len(x) // 8)].double() - expected).abs().max()
    if not error <= 0.01 * expected.max():
        raise ValueError(f"{name} is wrong by {error:.1e} on {list(x.shape)}")


def forward(cols: int, dtype: torch.dtype) -> list[dict[str, Any]]:
    """All kernels and peers on rows of one length."""
    rows = BYTES // dtype.itemsize // cols
    x = timing.inputs(rows, cols, dtype)
    functions = kernels(cols) | peers(cols)
    resources = {}
    for name, function in functions.items():
        with timing.launches() as found:
            check(name, function, x)
        if name.startswith("softmax/"):
            resources[name] = found
    calls = {name: lambda f=f: f(x) for name, f in functions.items()}
    y = torch.empty_like(x)
    calls["copy"] = lambda: y.copy_(x)
    times = timing.medians(calls)
    return [
        measurement(name, dtype, rows, cols, seconds, 2 * BYTES, times["copy"] / 2)
        | ({"launches": resources[name]} if name in resources else {})
        for name, seconds in times.items()
    ]


def backward(cols: int, dtype: torch.dtype) -> list[dict[str, Any]]:
    """The gradient, by the published kernel and by PyTorch."""
    rows = BYTES // dtype.itemsize // cols
    x = timing.inputs(rows, cols, dtype).requires_grad_()
    dy = timing.inputs(rows, cols, dtype)
    ys = {
        "softmax/gradient.py": snippet("gradient")(x),
        "torch.softmax": torch.softmax(x, dim=-1),
    }
    calls: dict[str, Callable[[], object]] = {
        name: lambda y=y: torch.autograd.grad(y, x, dy, retain_graph=True)
        for name, y in ys.items()
    }
    target = torch.empty_like(dy)
    calls["copy"] = lambda: target.copy_(dy)
    times = timing.medians(calls)
    copy = times.pop("copy")
    return [
        measurement(name, dtype, rows, cols, seconds, 3 * BYTES, copy / 2)
        for name, seconds in times.items()
    ]


def measurement(
    kernel: str,
    dtype: torch.dtype,
    rows: int,
    cols: int,
    seconds: float,
    size: int,
    copy_seconds: float,
) -> dict[str, Any]:
    """One entry of the record; `copy_seconds`: to copy BYTES, per direction."""
    return {
        "kernel": kernel,
        "dtype": str(dtype).removeprefix("torch."),
        "rows": rows,
        "cols": cols,
        "seconds": seconds,
        "bytes": size,
        "bytes_per_second": size / seconds,
        "fraction_of_copy": size / BYTES * copy_seconds / seconds,
    }


def main() -> int:
    """Measure, print, and write `softmax.json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.softmax")
    parser.add_argument(
        "--record", type=Path, help="the folder of the record; records/<gpu> if absent"
    )
    wanted = parser.parse_args().record
    if not torch.cuda.is_available():
        print("benchmarks.softmax: no GPU here; nothing measured", file=sys.stderr)
        return 1
    environment = machine.facts(timing.ROOT)
    folder = wanted or timing.ROOT / "records" / layout.slug(environment["gpu"])

    names = [f"snippets/softmax/{name}.py" for name in (*KERNELS, "gradient")]
    record: dict[str, Any] = {
        "format": records.FORMAT,
        "environment": environment,
        "manifest": records.hashes(timing.ROOT, names),
        "ceilings": {
            "copy": timing.copy_ceiling(),
            "matmul": timing.matmul_ceiling(),
        },
        "measurements": [],
        "backward": [],
    }
    for dtype in DTYPES:
        for cols in COLUMNS:
            for key, measure in (("measurements", forward), ("backward", backward)):
                found = measure(cols, dtype)
                record[key] += found
                torch.cuda.empty_cache()
                line = "  ".join(
                    f"{entry['kernel'].removeprefix('softmax/')} "
                    f"{entry['fraction_of_copy']:.3f}"
                    for entry in found
                )
                print(f"{found[0]['dtype']} {cols} {key}: {line}", flush=True)
    timing.write(record, folder / "softmax.json")
    print(f"wrote {folder / 'softmax.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
