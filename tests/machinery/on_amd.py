"""`python -m tests.machinery.on_amd FILE ...`: compile snippets for AMD's MI300.

Nothing runs, and no such GPU need be there. Each line of the output is JSON: the file,
and of each of its kernels the machine code, or why one does not compile.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from tests.compile import compiler

TARGET = GPUTarget("hip", "gfx942", 64)
BACKEND = make_backend(TARGET)


def compile_launch(kernel: JITFunction, *args: Any, **kwargs: Any) -> str:
    """What takes the place of a launch, as in the compiler of NVIDIA's."""
    del kwargs["grid"], kwargs["warmup"]
    kwargs |= {"debug": False, "instrumentation_mode": ""}
    bind = create_function_from_signature(kernel.signature, kernel.params, BACKEND)
    bound, specialization, _ = bind(*args, **kwargs)
    options, signature, constants, attributes = kernel._pack_args(
        BACKEND, kwargs, bound, specialization, None
    )
    source = ASTSource(kernel, signature, constants, attributes)
    made = triton.compile(source, target=TARGET, options=options.__dict__)
    return made.asm["amdgcn"]


if __name__ == "__main__":
    compiler.compile_launch = compile_launch
    compiler.DTYPES = (torch.float16,)
    torch.cuda.get_device_capability = lambda device: (9, 4)
    torch.cuda.get_device_properties = lambda device: compiler.PROPERTIES
    for file in sys.argv[1:]:
        (found,) = compiler.kernels_of(Path(file)).values()
        print(json.dumps([file, found]), flush=True)
