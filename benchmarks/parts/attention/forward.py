"""The forward pass, of batches of heads."""

from benchmarks import peers
from benchmarks.part import published
from benchmarks.parts.attention import PROTOCOL, attention

LONGEST = 8192  # longer, the score matrices of the definition do not fit

PART = attention(
    shapes=PROTOCOL,
    own=published("attention/naive.py", takes=lambda shape: shape.seq <= LONGEST)
    | published("attention/flash2.py", takes=lambda shape: not shape.causal)
    | published(
        "attention/flash2_causal.py",
        "attention/flash2_tuned.py",
        "attention/flash2_descriptors.py",
        "attention/flash2_persistent.py",
    ),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-efficient": peers.sdpa_efficient,
        "sdpa-cudnn": peers.sdpa_cudnn,
        "flex_attention": peers.flex,
        "fa3-fwd": peers.fa3,
    },
    ceiling="matmul",
    against={
        "times_flash": "sdpa-flash",
        "times_flex": "flex_attention",
        "times_cudnn": "sdpa-cudnn",
    },
)
