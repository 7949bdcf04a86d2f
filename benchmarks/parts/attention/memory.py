"""Memory: the most that one call allocates, of one head, so that every rung takes part.

The inputs are there before, and a call that tunes itself has done so.
"""

from benchmarks import timing
from benchmarks.part import published
from benchmarks.parts.attention import ONE_HEAD, attention, shape

LONGEST = 65536  # longer, the definition leaves no room for anything else

PART = attention(
    shapes=[shape(128, 2**power, 1, 1, causal=False) for power in range(9, 18)],
    own=published("attention/naive.py", takes=lambda shape: shape.seq <= LONGEST)
    | published(
        *ONE_HEAD,
        "attention/flash2.py",
        "attention/flash2_causal.py",
        "attention/flash2_tuned.py",
        "attention/flash2_descriptors.py",
        "attention/flash2_persistent.py",
    ),
    facts=lambda name, shape: {},
    measure=timing.peaks,
)
