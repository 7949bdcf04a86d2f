"""Pointers against descriptors with one and the same tile, warps and stages.

In the list `forward` each has what its autotuner found: two changes at a time.
"""

from benchmarks.calls import load
from benchmarks.part import Part
from benchmarks.parts.attention import compare, protocol

POINTERS, DESCRIPTORS = "attention/flash2_tuned.py", "attention/flash2_descriptors.py"
OWN, SEQS = (POINTERS, DESCRIPTORS), (4096, 16384)

PART = Part(
    own=OWN,
    shapes=lambda: (s for s in protocol() if s.head_dim < 256 and s.seq in SEQS),
    trial=lambda shape: compare(shape, OWN, tile=load(POINTERS).TILE),
    ceiling="matmul",
    against={"times_pointers": POINTERS},
)
