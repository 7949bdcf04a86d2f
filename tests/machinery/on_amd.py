"""`python -m tests.machinery.on_amd FILE ...`: compile snippets for AMD's MI300.

Nothing runs, and no such GPU need be there. Each line of the output is JSON: the file,
and of each of its kernels the machine code, or why one does not compile.
"""

import json
import sys
from pathlib import Path

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend

from tests.compile import compiler

if __name__ == "__main__":
    compiler.TARGET = GPUTarget("hip", "gfx942", 64)
    compiler.BACKEND = make_backend(compiler.TARGET)
    compiler.ASSEMBLY = "amdgcn"
    compiler.DTYPES = (torch.float16,)
    torch.cuda.get_device_capability = lambda device: (9, 4)
    torch.cuda.get_device_properties = lambda device: compiler.PROPERTIES
    for file in sys.argv[1:]:
        (found,) = compiler.kernels_of(Path(file)).values()
        print(json.dumps([file, found]), flush=True)
