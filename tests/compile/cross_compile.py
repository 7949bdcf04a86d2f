"""Compile the kernels of snippet files for a GPU that need not be there.

Run as a program, in a process without TRITON_INTERPRET: each argument is a file, and
the answer is JSON on standard output, {file: {dtype: [kernel, ...] or the error}}. The
launches are the file's own: its functions are called on the CPU, and a launch compiles
the kernel for exactly these arguments instead of running it.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

TARGET = GPUTarget("cuda", 90, 32)
BACKEND = make_backend(TARGET)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHAPES = {"attention": (2, 2, 48, 32)}
# What launches ask of the GPU: an H200's answers.
PROPERTIES = SimpleNamespace(
    multi_processor_count=132, shared_memory_per_block_optin=232448
)


class OnGpu(torch.Tensor):
    """A tensor on the CPU that says it is on a GPU: nothing here looks into it."""

    is_cuda = True


def ends(x: torch.Tensor) -> torch.Tensor:
    """[len(x)], int32: lengths, or where sequences begin."""
    return torch.zeros(len(x), dtype=torch.int32).as_subclass(OnGpu)


def causal(module: ModuleType, x: torch.Tensor, **blocks: int) -> None:
    """Some keys; then one, which is the number 1 and no constant.

    As a constant it makes ptxas crash, with this head_dim and tiles of 64 by 64.
    """
    module.attention(x, x, x, causal=True)
    q, k = x[..., :16], x[:, :, :1, :16]
    module.attention(q, k, k, causal=True, **blocks)


def tuned(module: ModuleType, x: torch.Tensor) -> None:
    """Call an autotuned file with one configuration: there is no GPU to time them."""
    tile = {"BLOCK_M": 64, "BLOCK_N": 64}
    config = next(config for config in module.CONFIGS if config.kwargs == tile)
    module.attention_kernel.configs = [config]
    causal(module, x)


def varlen(module: ModuleType, x: torch.Tensor) -> None:
    """Packed sequences; then all of them with a single key."""
    packed, starts = x.flatten(0, 1), ends(x)
    module.attention(packed, packed, packed, starts, starts, causal=True)
    q, k = packed[..., :16], packed[:1, :, :16]
    module.attention(q, k, k, starts, starts, causal=True, block_n=64)


def float8(module: ModuleType, x: torch.Tensor) -> Any:
    """Call a file whose inputs are of 8 bits, whatever the dtype of x."""
    module.attention_kernel.configs = module.CONFIGS[1:2]
    *lead, seq, head_dim = x.shape
    x = x.to(torch.float8_e4m3fn)
    v = torch.zeros((*lead, head_dim, -(-seq // 16) * 16)).to(x.dtype)[..., :seq]
    scale = torch.ones(lead).as_subclass(OnGpu)
    return module.attention(x, x, v.as_subclass(OnGpu), scale, scale, scale)


def split_kv(module: ModuleType, x: torch.Tensor) -> Any:
    """Many queries; then one for each head, against caches of some lengths."""
    module.attention(x, x, x, causal=True, splits=2)
    q, k = x.new_zeros(2, 8, 1, 128), x.new_zeros(2, 2, 300, 128)
    return module.attention(q, k, k, seq_lens=ends(k), splits=2)


def paged_kv(module: ModuleType, x: torch.Tensor) -> Any:
    """The same in pages of 48 and 16 keys."""
    table, lengths = ends(x)[:, None], ends(x)
    k = x.transpose(1, 2)
    module.attention(x, k, k, table, lengths, causal=True, splits=2)
    q, k = x.new_zeros(2, 8, 1, 128), x.new_zeros(3, 16, 2, 128)
    return module.attention(q, k, k, table, lengths, splits=2)


# How to call a file whose function is not softmax(x).
CALLS: dict[str, Callable[[ModuleType, torch.Tensor], Any]] = {
    "vector_add": lambda module, x: module.add(x[0], x[0]),
    "wrong_no_mask": lambda module, x: module.add(x[0], x[0], x[0]),
    "copy_tile": lambda module, x: module.copy(x),
    "addresses": lambda module, x: module.addresses(*x.shape, x.stride(0)),
    "exp2": lambda module, x: [
        module.weights(x.flatten().float(), 0.0, scale=1.0, base=base) for base in "e2"
    ],
    "flash1": lambda module, x: module.attention(x[0, 0], x[0, 0], x[0, 0]),
    "flash2_single_head": lambda module, x: module.attention(x[0, 0], x[0, 0], x[0, 0]),
    "wrong_half_state": lambda module, x: module.attention(x[0, 0], x[0, 0], x[0, 0]),
    "wrong_tail_keys": lambda module, x: module.attention(x[0, 0], x[0, 0], x[0, 0]),
    "flash2": lambda module, x: module.attention(x, x, x),
    "flash2_causal": lambda module, x: causal(module, x, block_n=64),
    "flash2_window": lambda module, x: module.attention(
        x, x, x, causal=True, window=100
    ),
    "flash2_tuned": tuned,
    "flash2_descriptors": tuned,
    "flash2_persistent": tuned,
    "varlen": varlen,
    "split_kv": split_kv,
    "paged_kv": paged_kv,
    "flash2_fp8": lambda module, x: float8(module, x),
    "wrong_small_block": lambda module, x: module.attention(x[0, 0], x[0, 0], x[0, 0]),
    "wrong_large_negative": lambda module, x: module.attention(
        x[0, 0], x[0, 0], x[0, 0]
    ),
}


ON_A_GPU = CALLS.keys() - {"addresses"}


def compile_launch(kernel: JITFunction, *args: Any, **kwargs: Any) -> None:
    """What takes the place of a launch: compile down to machine code."""
    del kwargs["grid"], kwargs["warmup"]
    kwargs |= {"debug": False, "instrumentation_mode": ""}
    bind = create_function_from_signature(kernel.signature, kernel.params, BACKEND)
    bound, specialization, _ = bind(*args, **kwargs)
    options, signature, constants, attributes = kernel._pack_args(
        BACKEND, kwargs, bound, specialization, None
    )
    source = ASTSource(kernel, signature, constants, attributes)
    triton.compile(source, target=TARGET, options=options.__dict__)


def kernels_of(path: Path) -> dict[str, list[str] | str]:
    """The kernels that each dtype launches, or why one of them does not compile."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    launched: list[str] = []

    def run(kernel: JITFunction, *args: Any, **kwargs: Any) -> None:
        compile_launch(kernel, *args, **kwargs)
        launched.append(kernel.__name__)

    JITFunction.run = run
    torch.cuda.get_device_capability = lambda device: (9, 0)
    torch.cuda.get_device_properties = lambda device: PROPERTIES
    found: dict[str, list[str] | str] = {}
    for dtype in DTYPES[:3] if path.parent.name == "attention" else DTYPES:
        launched.clear()
        x = torch.zeros(SHAPES.get(path.parent.name, (3, 200)), dtype=dtype)
        try:
            # These may ask the GPU for its size, but not for an interpreted launch.
            with triton.knobs.runtime.scope():
                triton.knobs.runtime.interpret = path.stem not in ON_A_GPU
                if path.stem in CALLS:
                    CALLS[path.stem](module, x.as_subclass(OnGpu))
                else:
                    module.softmax(x)
            found[str(dtype)] = launched.copy()
        except Exception as error:
            found[str(dtype)] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    print(json.dumps({name: kernels_of(Path(name)) for name in sys.argv[1:]}))
