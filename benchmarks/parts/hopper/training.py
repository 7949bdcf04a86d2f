"""Forward and backward in one call, as a layer that trains on Hopper sees them."""

from dataclasses import replace
from itertools import product

from benchmarks import peers
from benchmarks.parts.attention import TOKENS, WIDTH, shape
from benchmarks.parts.backward import training
from benchmarks.parts.backward.training import Trained, peer

PART = replace(
    training.PART,
    shapes=[
        shape(head_dim, seq, TOKENS // seq, WIDTH // head_dim, causal)
        for head_dim, causal, seq in product(
            (64, 128), (False, True), (1024, 4096, 16384)
        )
    ],
    own={
        name: Trained(name) for name in ("hopper/autograd.py", "backward/autograd.py")
    },
    peers={"sdpa-flash": peer(peers.sdpa_flash), "sdpa-cudnn": peer(peers.sdpa_cudnn)},
    against={"times_flash": "sdpa-flash", "times_cudnn": "sdpa-cudnn"},
)
