"""Pointers against descriptors with one and the same tile, warps and stages.

In the list `forward` each has what its autotuner found: two changes at a time.
"""

from benchmarks.calls import load
from benchmarks.part import published
from benchmarks.parts.attention import PROTOCOL, attention

POINTERS, DESCRIPTORS = "attention/flash2_tuned.py", "attention/flash2_descriptors.py"

PART = attention(
    shapes=[s for s in PROTOCOL if s.head_dim < 256 and s.seq in (4096, 16384)],
    own=published(POINTERS, DESCRIPTORS, options={"tile": load(POINTERS).TILE}),
    ceiling="matmul",
    against={"times_pointers": POINTERS},
)
