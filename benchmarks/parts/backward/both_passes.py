"""Forward and backward in one call of autograd, at all shapes of the backward part."""

import importlib

from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import Call
from benchmarks.part import Part
from benchmarks.parts.attention import output
from benchmarks.parts.backward import PROTOCOL, check
from benchmarks.parts.backward.training import Trained, facts, fresh, peer


def fa4(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Call:
    """FlashAttention-4, a beta, which wants the sequence before the heads."""
    attention = importlib.import_module("flash_attn.cute").flash_attn_func
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    return lambda: output(attention(*rows, causal=causal)).transpose(1, 2)


PART = Part(
    shapes=PROTOCOL,
    inputs=fresh,
    own={"backward/autograd_tuned.py": Trained("backward/autograd_tuned.py")},
    peers={
        "sdpa-flash": peer(peers.sdpa_flash),
        "sdpa-cudnn": peer(peers.sdpa_cudnn),
        "sdpa-efficient": peer(peers.sdpa_efficient),
        "flex_attention": peer(peers.flex),
        "flash-attn-4": peer(fa4),
    },
    check=check,
    facts=facts,
    measure=timing.one_by_one,
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_flex": "flex_attention"},
)
