"""Forward and backward in one call of autograd, at all shapes of the backward part."""

from benchmarks import peers, timing
from benchmarks.part import Part
from benchmarks.parts.backward import PROTOCOL, check
from benchmarks.parts.backward.training import Trained, facts, fresh, peer

PART = Part(
    shapes=PROTOCOL,
    inputs=fresh,
    own={"backward/autograd_tuned.py": Trained("backward/autograd_tuned.py")},
    peers={
        "sdpa-flash": peer(peers.sdpa_flash),
        "sdpa-cudnn": peer(peers.sdpa_cudnn),
        "sdpa-efficient": peer(peers.sdpa_efficient),
        "flex_attention": peer(peers.flex),
    },
    check=check,
    facts=facts,
    measure=timing.one_by_one,
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_flex": "flex_attention"},
)
