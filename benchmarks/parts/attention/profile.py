"""What NVIDIA's profiler counts of the first rungs, up to FlashAttention-2.

One head has as many FLOPs here as the 64 heads in the list `profile` of hopper.
"""

from benchmarks import timing
from benchmarks.part import published
from benchmarks.parts import profiler
from benchmarks.parts.attention import LARGE, ONE_HEAD, attention, shape

PART = attention(
    shapes=[shape(128, 32768, 1, 1, causal=False)],
    own=published("attention/naive.py", *ONE_HEAD, "attention/flash2.py") | LARGE,
    measure=profiler.beside(timing.in_graphs, __name__),
    ceiling="matmul",
)
