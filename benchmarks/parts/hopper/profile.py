"""What NVIDIA's profiler counts of each rung of the forward pass on a batch of heads.

The rungs of one head are in the list `profile` of attention.
"""

from benchmarks import peers, timing
from benchmarks.part import published
from benchmarks.parts import profiler
from benchmarks.parts.attention import PROTOCOL, attention

PART = attention(
    shapes=[each for each in PROTOCOL if each.seq == 4096],
    own=published("attention/flash2.py", takes=lambda shape: not shape.causal)
    | published("attention/flash2_causal.py", takes=lambda shape: shape.causal)
    | published("attention/flash2_tuned.py", "attention/flash2_descriptors.py")
    | published(
        "hopper/gluon_flash.py",
        "hopper/gluon_specialised.py",
        "hopper/gluon_overlapped.py",
        takes=lambda shape: not shape.causal,
    )
    | published("hopper/gluon_causal.py", "hopper/gluon_persistent.py"),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-cudnn": peers.sdpa_cudnn,
        "fa3-fwd": peers.fa3,
    },
    measure=profiler.beside(timing.in_graphs, __name__),
    ceiling="matmul",
    against={"times_fa3": "fa3-fwd"},
)
