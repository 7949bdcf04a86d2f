"""The sliding window: what a narrower one saves, on one long sequence."""

from benchmarks import peers
from benchmarks.part import Shape, published
from benchmarks.parts.attention import attention, shape

LONG = shape(128, 16384, 1, 16, causal=True)
WINDOWS = (256, 1024, 4096, 16384)  # the widest is the causal mask

PART = attention(
    shapes=[Shape(**vars(LONG), window=window) for window in WINDOWS],
    own=published("attention/flash2_window.py"),
    peers={"flex_attention": peers.flex},
    facts=lambda name, shape: {},
)
