"""What NVIDIA's profiler counts of the backward pass.

At 4096 rows these are the rungs beside each other. The other shapes are those at which
the tuned one is furthest behind, and only the libraries that it is behind are there.
"""

from benchmarks import peers, timing
from benchmarks.part import Part
from benchmarks.parts import profiler
from benchmarks.parts.backward import (
    PROTOCOL,
    check,
    credited,
    derived,
    normal,
    ours,
)

RUNGS = {128: 4096}  # seq by head_dim, without a mask
BEHIND = {64: 16384, 128: 8192, 256: 16384}

PART = Part(
    shapes=[
        each
        for each in PROTOCOL
        if BEHIND[each.head_dim] == each.seq
        or (RUNGS.get(each.head_dim) == each.seq and not each.causal)
    ],
    inputs=normal,
    own=ours("backward/backward_tuned.py")
    | ours(
        "backward/two_kernels.py",
        "backward/one_kernel.py",
        "hopper/gluon_backward.py",
        takes=lambda shape: shape.seq == 4096,
    ),
    peers={
        "sdpa-flash": derived(peers.sdpa_flash),
        "sdpa-cudnn": derived(peers.sdpa_cudnn),
    },
    check=check,
    facts=credited,
    measure=profiler.beside(
        timing.one_by_one, __name__, apart=("dq_kernel", "dkdv_kernel")
    ),
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_cudnn": "sdpa-cudnn"},
)
