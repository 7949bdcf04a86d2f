"""The rungs of one head on a batch of heads: they are called for each head in turn.

The other rungs of the ladder are in the list `forward`, at the same shape.
"""

from benchmarks.part import Part
from benchmarks.parts.attention import LARGE, ONE_HEAD, compare, typical

PART = Part(
    own=(*ONE_HEAD, *LARGE),
    shapes=lambda: typical()[:1],
    trial=lambda shape: compare(shape, ONE_HEAD, variants=LARGE),
    ceiling="matmul",
)
