"""Attention's backward pass in Gluon, against what else runs on Hopper."""

from benchmarks import peers, timing
from benchmarks.part import Part
from benchmarks.parts.backward import (
    PROTOCOL,
    check,
    credited,
    derived,
    normal,
    ours,
)

PART = Part(
    shapes=[each for each in PROTOCOL if each.head_dim <= 128 and each.seq >= 1024],
    inputs=normal,
    own=ours(
        "hopper/gluon_backward.py",
        "backward/backward_tuned.py",
        "backward/one_kernel.py",
    ),
    peers={
        "sdpa-flash": derived(peers.sdpa_flash),
        "sdpa-cudnn": derived(peers.sdpa_cudnn),
    },
    check=check,
    facts=credited,
    measure=timing.one_by_one,
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_cudnn": "sdpa-cudnn"},
)
