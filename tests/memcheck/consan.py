"""Run a module, such as a snippet's demo, under Triton's own sanitizer, consan.

`python -m tests.memcheck.consan snippets.hopper.gluon_flash`.
"""

import runpy
import sys

import torch
import triton

if __name__ == "__main__":
    triton.knobs.compilation.instrumentation_mode = "consan"
    # Where it keeps what it has seen.
    triton.set_allocator(
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8).cuda()
    )
    del sys.argv[0]
    # The allocator is this thread's own, so the backward pass stays in it, too.
    with torch.autograd.set_multithreading_enabled(False):
        runpy.run_module(sys.argv[0], run_name="__main__")
