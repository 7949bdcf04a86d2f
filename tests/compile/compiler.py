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
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.jit import JITFunction, create_function_from_signature

from benchmarks import calls

TARGET = GPUTarget("cuda", 90, 32)
BACKEND = make_backend(TARGET)
ASSEMBLY = "ptx"
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
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
    "p": 0.1,
    "cap": 30.0,
    "seed": 2026,
}
DECODING = tuple(
    f"attention/{name}.py" for name in ("split_kv", "split_kv_overlapped", "paged_kv")
)
NARROW_VALUES = ("companions/value_dim.py",)
NOT_CAUSAL = (  # they have the option, only to refuse it
    "attention/flash2.py",
    *(f"hopper/gluon_{rung}.py" for rung in ("flash", "specialised", "overlapped")),
)
# The dtype for which the shapes are tried that are other kernels: one key, one query.
SHAPES = torch.bfloat16
SCORES = ("attention/exp2.py",)
COPIES = ("hopper/copy_tma.py",)
TILES = ("hopper/fp8_tile.py",)


class OnGpu(torch.Tensor):
    """A tensor on the CPU that says it is on a GPU: nothing here looks into it."""

    is_cuda = True


def zeros(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """A kernel is compiled for a dtype and for some of the shape, not for values."""
    return torch.zeros(shape, dtype=dtype).as_subclass(OnGpu)


def examples(module: ModuleType, name: str, dtype: torch.dtype) -> Iterator[calls.Call]:
    """Calls of what the file publishes: a function of q, of x, or of vectors."""
    if of_vectors(module):
        x = zeros(200, dtype=dtype)
        yield calls.call(module, dict.fromkeys(("x", "y", "out"), x))
    elif name in COPIES:  # each has two kernels
        for strips in (False, True):
            yield partial(module.copy, zeros(300, 200, dtype=dtype), strips=strips)
    elif begins_with(module, "a"):
        a, b = zeros(300, 200, dtype=dtype), zeros(500, 200, dtype=dtype)
        for block_m, block_n in product((64, 128), (64, 128, 256)):
            yield partial(module.product, a, b, block_m=block_m, block_n=block_n)
    elif name in TILES:  # no more keys than a tile has
        for head_dim in (16, 64, 128, 256):
            x = zeros(2, 2, 48, head_dim, dtype=dtype)
            inputs = calls.quantised(module, dict.fromkeys("qkv", x))
            yield partial(module.attention, **inputs)
    elif begins_with(module, "dq_sum"):
        for head_dim in (64, 128):
            q = zeros(2, 2, 48, head_dim, dtype=dtype)
            dq_sum = zeros(2, 2, 1, 64 * head_dim, dtype=torch.float32)
            yield partial(module.postprocess, dq_sum, q)
    elif of_attention(module):
        yield from attention(module, name, dtype)
    elif begins_with(module, "dy"):  # the gradient that arrives
        yield gradients_of_a_norm(module, dtype)
    else:
        x = zeros(3, 200, dtype=dtype).requires_grad_(differentiable(module))
        sizes = {"rows": 3, "cols": 200, "stride": 300}
        rows = dict.fromkeys(("weight", "bias"), zeros(200, dtype=dtype))
        inputs = {"x": x, "keep": x.detach() > 0}
        yield calls.call(module, OPTIONS | inputs | sizes | rows)


def of_vectors(module: ModuleType) -> bool:
    """Whether a file publishes a function of two vectors, x and y or x and out."""
    if not begins_with(module, "x"):
        return False
    known = inspect.signature(calls.public(module, {"x": None})).parameters
    return bool({"y", "out"} & known.keys())


def of_attention(module: ModuleType) -> bool:
    """Whether a file begins with a tensor of attention, which has no float64."""
    return begins_with(module, "q", "s", "o", "do")


def begins_with(module: ModuleType, *names: str) -> bool:
    """Whether a file publishes a function whose first parameter is one of these."""
    try:
        return bool(calls.public(module, dict.fromkeys(names)))
    except LookupError:
        return False


def differentiable(module: ModuleType) -> bool:
    """Whether a file has a backward pass of PyTorch's kind, or an operator with one."""
    kinds = [each for each in vars(module).values() if isinstance(each, type)]
    operators = [*map(type, vars(module).values())].count(torch.library.CustomOpDef)
    return operators > 0 or any(issubclass(x, torch.autograd.Function) for x in kinds)


def backward(result: Any) -> None:
    """Go back through a result, so that the kernels of that are compiled as well."""
    outputs = result if isinstance(result, tuple) else (result,)
    for y in outputs:
        if isinstance(y, torch.Tensor) and y.requires_grad:
            y.backward(torch.zeros_like(y), retain_graph=True)


def gradients_of_a_norm(module: ModuleType, dtype: torch.dtype) -> calls.Call:
    """A call of a norm's backward pass; a wide row has several programs."""
    x = zeros(3, 5000, dtype=dtype)
    inputs = {"dy": x, "x": x, "weight": x[0], "programs": 6}
    inputs |= dict.fromkeys(("mean", "rstd"), zeros(3, dtype=torch.float32))
    function = calls.public(module, inputs)
    known = inspect.signature(function).parameters
    return partial(function, **{key: inputs[key] for key in known if key in inputs})


def attention(
    module: ModuleType, name: str, dtype: torch.dtype
) -> Iterator[calls.Call]:
    """Calls with some options, when decoding, and with a single key."""
    scores = {"s": zeros(200, dtype=torch.float32), "m": 0.0}
    # Exact products are unrolled: of large heads they take the compiler seconds.
    x = zeros(2, 2, 48, 16 if dtype is torch.float32 else 32, dtype=dtype)
    rows = zeros(2, 2, 48, dtype=torch.float32)
    inputs = OPTIONS | dict.fromkeys(("q", "k", "v", "o", "do"), x)
    inputs["seed"] = zeros(dtype=torch.int64)
    inputs["ranges"] = zeros(2, 48, 2, dtype=torch.int32)
    inputs |= dict.fromkeys(("slopes", "sink"), rows[0, :, 0])
    docs = zeros(2, 48, dtype=torch.int32)
    inputs |= {"docs": docs, "prefix": docs[:, 0]}
    inputs |= dict.fromkeys(("lse", "dlse", "delta"), rows)
    function = calls.public(module, inputs | scores)
    if "do" in inspect.signature(function).parameters:
        yield from attention_backward(module, name, function, inputs)
        return
    inputs |= scores
    leaf = x.detach().requires_grad_(differentiable(module))
    inputs |= {"q": leaf, "k": leaf, "v": leaf}
    if "ranges" in inspect.signature(function).parameters:  # a mask of its own
        given = {x: inputs[x] for x in ("q", "k", "v", "ranges")}
        for softcap in (None, 20.0):
            yield partial(function, **given, softcap=softcap)
        return
    if name in NARROW_VALUES:
        inputs["v"] = leaf[..., : x.shape[3] // 2]
    if name in NOT_CAUSAL:
        inputs["causal"] = False
    known = function.__kwdefaults__ or {}
    if name in SCORES:
        for base in "e2":
            yield calls.call(module, inputs, scale=1.0, base=base)
        return
    if name.startswith("hopper/"):  # each size of head_dim has its own tiles
        for head_dim, seq in ((16, 48), (64, 48), (64, 8192), (128, 48), (256, 48)):
            wide = dict.fromkeys("qkv", zeros(2, 2, seq, head_dim, dtype=dtype))
            yield calls.call(module, inputs | wide)
            if inputs["causal"] and dtype is SHAPES:
                yield calls.call(module, inputs | wide | {"causal": False})
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
        q, k = leaf[..., :16], leaf[:, :, :1, :16]
        yield calls.call(module, inputs | {"q": q, "k": k, "v": k}, **options)


def attention_backward(
    module: ModuleType, name: str, function: Callable[..., Any], inputs: calls.Inputs
) -> Iterator[calls.Call]:
    """Calls with and without a gradient of lse, with a single key, and uneven tiles."""
    known = inspect.signature(function).parameters
    one_key = dict.fromkeys("kv", inputs["k"][:, :, :1])
    every = [{"block_m": 16, "block_n": 32}, {"dlse": None}, one_key]
    if "tma" in known:  # the TMA unit adds, and the tile is the file's own
        every.append({"tma": True, "tile": None})
    if name.startswith("hopper/"):  # each size of head_dim has its own tiles
        for head_dim, causal in product((64, 128), (False, True)):
            x = zeros(2, 2, 128, head_dim, dtype=inputs["q"].dtype)
            rows = dict.fromkeys(("lse", "dlse"), x[..., 0].float())
            every.append(dict.fromkeys(("q", "k", "v", "o", "do"), x) | rows)
            every[-1]["causal"] = causal
    if "cu_seqlens_q" in known:
        inputs = inputs | {name: calls.pack(inputs[name]) for name in ("o", "do")}
        inputs["lse"] = inputs["lse"].transpose(0, 1).flatten(1)
    for changes in every:
        given = inputs | changes
        if "cu_seqlens_q" in known:
            given |= calls.packed(module, given)
        yield partial(function, **{key: given[key] for key in known if key in given})


def compile_launch(kernel: JITFunction, *args: Any, **kwargs: Any) -> str:
    """What takes the place of a launch: compile down to machine code."""
    del kwargs["grid"], kwargs["warmup"]
    kwargs |= {"debug": False, "instrumentation_mode": ""}
    bind = create_function_from_signature(kernel.signature, kernel.params, BACKEND)
    bound, specialization, _ = bind(*args, **kwargs)
    options, signature, constants, attributes = kernel._pack_args(
        BACKEND, kwargs, bound, specialization, None
    )
    language = GluonASTSource if kernel.is_gluon() else ASTSource
    source = language(kernel, signature, constants, attributes)
    made = triton.compile(source, target=TARGET, options=options.__dict__)
    return made.asm[ASSEMBLY]


def kernels_of(path: Path) -> dict[str, list[tuple[str, str]] | str]:
    """The kernels that each dtype launches, or why one of them does not compile.

    A dtype that the file itself refuses is left out.
    """
    part = path.parent.name
    spec = importlib.util.spec_from_file_location(f"snippets.{part}.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    launched: list[tuple[str, str]] = []

    def run(kernel: JITFunction, *args: Any, **kwargs: Any) -> None:
        launched.append((kernel.__name__, compile_launch(kernel, *args, **kwargs)))

    JITFunction.run = run
    found: dict[str, list[tuple[str, str]] | str] = {}
    for dtype in DTYPES[:3] if of_attention(module) else DTYPES:
        launched.clear()
        try:
            for call in examples(module, f"{part}/{path.name}", dtype):
                backward(call())
            found[str(dtype)] = launched.copy()
        except Exception as error:
            if isinstance(error, ValueError) and "it must be" in str(error):
                continue  # The file does not take this dtype.
            found[str(dtype)] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    torch.cuda.get_device_capability = lambda device: (9, 0)
    torch.cuda.get_device_properties = lambda device: PROPERTIES
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a snippet prints
    for line in sys.stdin:
        print(json.dumps(kernels_of(Path(line.strip()))), file=answers, flush=True)
