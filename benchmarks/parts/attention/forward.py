"""The forward pass, of batches of heads."""

from functools import partial

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, flops, normal, protocol

CAUSAL = (
    "attention/flash2_causal.py",
    "attention/flash2_tuned.py",
    "attention/flash2_descriptors.py",
    "attention/flash2_persistent.py",
)
NAIVE, NOT_CAUSAL = "attention/naive.py", "attention/flash2.py"
LONGEST = 8192  # longer, the score matrices of the definition do not fit


def trial(shape: Shape) -> Trial:
    """All kernels on q, k and v."""
    qkv, causal = normal(shape), shape.causal
    names = (NAIVE,) if shape.seq <= LONGEST else ()
    names += CAUSAL if causal else (NOT_CAUSAL, *CAUSAL)
    return Trial(
        own=published(names, *qkv, causal=causal),
        peers={
            **{
                name: partial(peers.sdpa, name, *qkv, is_causal=causal)
                for name in peers.BACKENDS
            },
            "flex_attention": partial(peers.flex, *qkv, causal=causal),
            "fa3-fwd": partial(peers.fa3, *qkv, causal=causal),
        },
        check=lambda name, result: check(*qkv, result, causal=causal),
        work=flops(shape),
    )


PART = Part(
    snippets=(NAIVE, NOT_CAUSAL, *CAUSAL),
    shapes=protocol,
    trial=trial,
    compiled=("flex_attention",),
    ceiling="matmul",
    against={
        "times_flash": "sdpa-flash",
        "times_flex": "flex_attention",
        "times_cudnn": "sdpa-cudnn",
    },
)
