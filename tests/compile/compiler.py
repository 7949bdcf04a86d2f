"""Compile the kernels of snippet files for a GPU that need not be there.

Run as a program, in a process without TRITON_INTERPRET: each line of its input is a
file, and each line of its output is what became of it, as JSON: {dtype: [[kernel, its
assembly], ...]}, or an error in place of the kernels. The launches are the file's own:
its functions are called on the CPU, and a launch compiles the kernel for exactly these
arguments instead of running it.
"""

import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from functools import partial
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
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
HALVES_AND_FLOAT32 = ("attention", "backward")  # parts without float64
# What a launch asks of the GPU: an H200's answers.
PROPERTIES = SimpleNamespace(
    multi_processor_count=132, shared_memory_per_block_optin=232448
)
# Options that some functions have. Asked for so many programs or so large a tile, one
# need not ask the GPU.
OPTIONS = {
    "causal": True,
    "window": 100,
    "splits": 2,
    "programs": 4,
    "tile": {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2},
}
DECODING = tuple(
    f"attention/{name}.py" for name in ("split_kv", "split_kv_overlapped", "paged_kv")
)
NOT_CAUSAL = ("attention/flash2.py",)  # it has the option, only to refuse it
BACKWARD = ("softmax/gradient.py",)
# The dtype for which the shapes are tried that are other kernels: one key, one query.
SHAPES = torch.bfloat16
VECTORS = ("start/vector_add.py", "start/wrong_no_mask.py")
SCORES = ("attention/exp2.py",)


class OnGpu(torch.Tensor):
    """A tensor on the CPU that says it is on a GPU: nothing here looks into it."""

    is_cuda = True


def zeros(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """A kernel is compiled for a dtype and for some of the shape, not for values."""
    return torch.zeros(shape, dtype=dtype).as_subclass(OnGpu)


def examples(module: ModuleType, dtype: torch.dtype) -> Iterator[calls.Call]:
    """Calls of what the file publishes."""
    path = Path(module.__file__)
    name = f"{path.parent.name}/{path.name}"
    if name.startswith("attention/"):
        yield from attention(module, name, dtype)
        return
    if name.startswith("backward/"):
        yield attention_backward(module, dtype)
        return
    x = zeros(3, 200, dtype=dtype)
    inputs = OPTIONS | {"x": x, "rows": 3, "cols": 200, "stride": 300}
    if name in VECTORS:
        inputs = dict.fromkeys(("x", "y", "out"), x[0])
    if name in BACKWARD:
        inputs["dy"] = x
    yield calls.call(module, inputs)


def attention(
    module: ModuleType, name: str, dtype: torch.dtype
) -> Iterator[calls.Call]:
    """Calls with some options, when decoding, and with a single key."""
    scores = {"s": zeros(200, dtype=torch.float32), "m": 0.0}
    # Exact products are unrolled: of large heads they take the compiler seconds.
    x = zeros(2, 2, 48, 16 if dtype is torch.float32 else 32, dtype=dtype)
    inputs = OPTIONS | scores | {"q": x, "k": x, "v": x}
    if name in NOT_CAUSAL:
        inputs["causal"] = False
    known = calls.public(module, inputs).__kwdefaults__ or {}
    if name in SCORES:
        for base in "e2":
            yield calls.call(module, inputs, scale=1.0, base=base)
        return
    yield calls.call(module, inputs)
    if dtype is not SHAPES:
        return
    if name in DECODING:  # one query for each head, and caches of some lengths
        q, k = zeros(2, 8, 1, 128, dtype=dtype), zeros(2, 2, 304, 128, dtype=dtype)
        seq_lens = zeros(2, dtype=torch.int32)
        inputs = {"q": q, "k": k, "v": k, "seq_lens": seq_lens}
        yield calls.call(module, inputs, splits=2)
    elif "causal" in known and inputs["causal"]:
        # A single key, which is the number 1 and no constant. As a constant it makes
        # ptxas crash, with this head_dim and tiles of 64 by 64.
        options = {"block_n": 64} if "block_n" in known else {}
        q, k = x[..., :16], x[:, :, :1, :16]
        yield calls.call(module, inputs | {"q": q, "k": k, "v": k}, **options)


def attention_backward(module: ModuleType, dtype: torch.dtype) -> calls.Call:
    """A call of a kernel of the backward pass, with a gradient of the logsumexp.

    A function without gradients among its parameters is one that autograd knows.
    """
    x = zeros(2, 2, 48, 16 if dtype is torch.float32 else 32, dtype=dtype)
    rows = zeros(2, 2, 48, dtype=torch.float32)
    inputs = OPTIONS | dict.fromkeys(("q", "k", "v", "o", "do"), x)
    inputs |= dict.fromkeys(("lse", "dlse", "delta"), rows)
    function = calls.public(module, inputs)
    known = inspect.signature(function).parameters
    call = partial(function, **{key: inputs[key] for key in known if key in inputs})
    if "do" in known:
        return call
    x.requires_grad_()
    return lambda: torch.autograd.grad(call(), x, (torch.zeros_like(x), rows))


def compile_launch(kernel: JITFunction, *args: Any, **kwargs: Any) -> str:
    """What takes the place of a launch: compile down to machine code."""
    del kwargs["grid"], kwargs["warmup"]
    kwargs |= {"debug": False, "instrumentation_mode": ""}
    bind = create_function_from_signature(kernel.signature, kernel.params, BACKEND)
    bound, specialization, _ = bind(*args, **kwargs)
    options, signature, constants, attributes = kernel._pack_args(
        BACKEND, kwargs, bound, specialization, None
    )
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=TARGET, options=options.__dict__).asm["ptx"]


def kernels_of(path: Path) -> dict[str, list[tuple[str, str]] | str]:
    """The kernels that each dtype launches, or why one of them does not compile."""
    part, name = path.parent.name, path.stem
    spec = importlib.util.spec_from_file_location(f"snippets.{part}.{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    launched: list[tuple[str, str]] = []

    def run(kernel: JITFunction, *args: Any, **kwargs: Any) -> None:
        launched.append((kernel.__name__, compile_launch(kernel, *args, **kwargs)))

    JITFunction.run = run
    found: dict[str, list[tuple[str, str]] | str] = {}
    for dtype in DTYPES[:3] if part in HALVES_AND_FLOAT32 else DTYPES:
        launched.clear()
        try:
            for call in examples(module, dtype):
                call()
            found[str(dtype)] = launched.copy()
        except Exception as error:
            found[str(dtype)] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    torch.cuda.get_device_capability = lambda device: (9, 0)
    torch.cuda.get_device_properties = lambda device: PROPERTIES
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a snippet prints
    for line in sys.stdin:
        print(json.dumps(kernels_of(Path(line.strip()))), file=answers, flush=True)
