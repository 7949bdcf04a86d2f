"""The sliding window: what a narrower one saves, on one long sequence."""

from dataclasses import replace

from benchmarks.part import Part, Shape, Trial
from benchmarks.parts.attention import compare

SNIPPETS = ("attention/flash2_window.py",)
WINDOWS = (256, 1024, 4096, 16384)  # the widest is the causal mask
LONG = {"dtype": "bfloat16", "head_dim": 128, "seq": 16384, "batch": 1, "heads": 16}


def trial(shape: Shape) -> Trial:
    """Our kernel, and FlexAttention, the peer that has windows."""
    compared = compare(shape, SNIPPETS, ["flex_attention"], window=shape.window)
    return replace(compared, work={})


PART = Part(
    own=SNIPPETS,
    shapes=lambda: (Shape(**LONG, causal=True, window=width) for width in WINDOWS),
    trial=trial,
    compiled=("flex_attention",),
)
