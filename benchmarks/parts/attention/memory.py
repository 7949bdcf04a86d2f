"""Memory: the most that one call allocates, of one head, so that every rung takes part.

The inputs are there before, and a call that tunes itself has done so.
"""

from benchmarks import timing
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, normal, one_head

NAIVE, FP8 = "attention/naive.py", "attention/flash2_fp8.py"
LONGEST = 65536  # longer, the definition leaves no room for anything else
SNIPPETS = (
    NAIVE,
    "attention/flash1.py",
    "attention/flash2_single_head.py",
    "attention/flash2.py",
    "attention/flash2_causal.py",
    "attention/flash2_tuned.py",
    "attention/flash2_descriptors.py",
    "attention/flash2_persistent.py",
    "attention/flash2_window.py",
    FP8,
    "attention/varlen.py",
    "attention/split_kv.py",
)


def trial(shape: Shape) -> Trial:
    """All rungs."""
    qkv = normal(shape)
    return Trial(
        own=published(SNIPPETS if shape.seq <= LONGEST else SNIPPETS[1:], *qkv),
        peers={},
        check=lambda name, result: check(
            *qkv, result, tolerance=0.2 if name == FP8 else 0.02
        ),
        facts={FP8: {"dtype": "float8_e4m3fn"}},
        measure=timing.peaks,
    )


PART = Part(
    snippets=SNIPPETS,
    shapes=lambda: (one_head(128, 2**power) for power in range(9, 18)),
    trial=trial,
)
