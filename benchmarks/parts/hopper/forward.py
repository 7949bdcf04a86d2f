"""Attention's forward pass in Gluon, against what else runs on Hopper."""

from benchmarks import peers
from benchmarks.part import published
from benchmarks.parts.attention import PROTOCOL, attention

PART = attention(
    shapes=[each for each in PROTOCOL if 1024 <= each.seq <= 16384],
    own=published(
        "attention/flash2_descriptors.py",
        "hopper/gluon_causal.py",
        "hopper/gluon_persistent.py",
    )
    | published(
        "hopper/gluon_flash.py",
        "hopper/gluon_specialised.py",
        "hopper/gluon_overlapped.py",
        takes=lambda shape: not shape.causal,
    ),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-cudnn": peers.sdpa_cudnn,
        "fa3-fwd": peers.fa3,
    },
    ceiling="matmul",
    against={"times_cudnn": "sdpa-cudnn", "times_fa3": "fa3-fwd"},
)
