"""Pointers against descriptors with one and the same tile, warps and stages.

In the list `forward` each has what its autotuner found: two changes at a time.
"""

from benchmarks.calls import load
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, flops, normal, protocol

POINTERS, DESCRIPTORS = "attention/flash2_tuned.py", "attention/flash2_descriptors.py"
SEQS = (4096, 16384)


def trial(shape: Shape) -> Trial:
    """Both kernels with the tile that the first one recommends."""
    qkv, causal = normal(shape), shape.causal
    tile = load(POINTERS).TILE
    return Trial(
        own=published((POINTERS, DESCRIPTORS), *qkv, causal=causal, tile=tile),
        peers={},
        check=lambda name, result: check(*qkv, result, causal=causal),
        work=flops(shape),
    )


PART = Part(
    snippets=(POINTERS, DESCRIPTORS),
    shapes=lambda: (s for s in protocol() if s.head_dim < 256 and s.seq in SEQS),
    trial=trial,
    ceiling="matmul",
    against={"times_pointers": POINTERS},
)
