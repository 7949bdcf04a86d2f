"""The sliding window: what a narrower one saves, on one long sequence."""

from functools import partial

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, normal

SNIPPETS = ("attention/flash2_window.py",)
WINDOWS = (256, 1024, 4096, 16384)  # the widest is the causal mask
LONG = {"dtype": "bfloat16", "head_dim": 128, "seq": 16384, "batch": 1, "heads": 16}


def trial(shape: Shape) -> Trial:
    """Our kernel, and FlexAttention, the peer that has windows."""
    qkv, options = normal(shape), {"causal": True, "window": shape.window}
    return Trial(
        own=published(SNIPPETS, *qkv, **options),
        peers={"flex_attention": partial(peers.flex, *qkv, **options)},
        check=lambda name, result: check(*qkv, result, **options),
    )


PART = Part(
    snippets=SNIPPETS,
    shapes=lambda: (Shape(**LONG, window=window) for window in WINDOWS),
    trial=trial,
    compiled=("flex_attention",),
)
