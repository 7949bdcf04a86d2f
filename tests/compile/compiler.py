"""Compile the kernels of snippet files for a GPU that need not be there.

Run as a program, in a process without TRITON_INTERPRET: each line of its input is a
file, and each line of its output is what became of it, as JSON: {dtype: {kernel: its
assembly}}, or the error in place of the kernels. The launches are the file's own: its
functions are called on the CPU, and a launch compiles the kernel for exactly these
arguments instead of running it.
"""

import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from benchmarks import calls

TARGET = GPUTarget("cuda", 90, 32)
BACKEND = make_backend(TARGET)
DTYPES = {
    "attention": (torch.float16, torch.bfloat16, torch.float32),
    "softmax": (torch.float16, torch.bfloat16, torch.float32, torch.float64),
}
# What launches ask of the GPU: an H200's answers.
PROPERTIES = SimpleNamespace(
    multi_processor_count=132, shared_memory_per_block_optin=232448
)
# Where a function has such an option.
OPTIONS = {"causal": True, "window": 100, "splits": 2}
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2}
DECODING = ("attention/split_kv.py", "attention/paged_kv.py")


class OnGpu(torch.Tensor):
    """A tensor on the CPU that says it is on a GPU: nothing here looks into it."""

    is_cuda = True


def zeros(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """All that a kernel is compiled for is a dtype, and some of the shape."""
    return torch.zeros(shape, dtype=dtype).as_subclass(OnGpu)


def examples(module: ModuleType, dtype: torch.dtype) -> Iterator[calls.Call]:
    """Calls of what the file publishes."""
    name = calls.name_of(module)
    if not name.startswith("attention/"):
        x = torch.zeros(3, 200, dtype=dtype)
        yield calls.call(module, x.as_subclass(OnGpu) if "start/" in name else x)
        return
    function = getattr(module, "attention", None)
    known = inspect.signature(function).parameters if function else {}
    options = {key: value for key, value in OPTIONS.items() if key in known}
    if name in calls.NOT_CAUSAL:
        del options["causal"]
    x = zeros(2, 2, 48, 32, dtype=dtype)
    yield calls.call(module, x, x, x, **options)
    if name in DECODING:  # one query for each head, and caches of some lengths
        q, k = zeros(2, 8, 1, 128, dtype=dtype), zeros(2, 2, 304, 128, dtype=dtype)
        if "seq_lens" in known:
            options["seq_lens"] = zeros(2, dtype=torch.int32)
        yield calls.call(module, q, k, k, **options)
    elif "causal" in options:
        # A single key, which is the number 1 and no constant. As a constant it makes
        # ptxas crash, with this head_dim and tiles of 64 by 64.
        tile = {"tile": TILE} if "tile" in known else {"block_n": 64}
        options |= tile if tile.keys() <= known.keys() else {}
        yield calls.call(module, x[..., :16], *[x[:, :, :1, :16]] * 2, **options)
