"""Memory: the most that one call allocates, of one head, so that every rung takes part.

The inputs are there before, and a call that tunes itself has done so.
"""

from dataclasses import replace

from benchmarks import timing
from benchmarks.part import Part, Shape, Trial
from benchmarks.parts.attention import compare, one_head

LONGEST = 65536  # longer, the definition leaves no room for anything else
SNIPPETS = (
    "attention/naive.py",
    "attention/flash1.py",
    "attention/flash2_single_head.py",
    "attention/flash2.py",
    "attention/flash2_causal.py",
    "attention/flash2_tuned.py",
    "attention/flash2_descriptors.py",
    "attention/flash2_persistent.py",
    "attention/flash2_window.py",
    "attention/flash2_fp8.py",
    "attention/varlen.py",
    "attention/split_kv.py",
)


def trial(shape: Shape) -> Trial:
    """All rungs."""
    names = SNIPPETS if shape.seq <= LONGEST else SNIPPETS[1:]
    facts = {"attention/flash2_fp8.py": {"dtype": "float8_e4m3fn"}}
    return replace(compare(shape, names), work={}, facts=facts, measure=timing.peaks)


PART = Part(
    own=SNIPPETS,
    shapes=lambda: (one_head(128, 2**power) for power in range(9, 18)),
    trial=trial,
)
