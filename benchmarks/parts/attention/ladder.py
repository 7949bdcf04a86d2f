"""The rungs of one head on a batch of heads: they are called for each head in turn.

The other rungs of the ladder are in the list `forward`, at the same shape.
"""

from benchmarks.part import published
from benchmarks.parts.attention import LARGE, ONE_HEAD, TYPICAL, attention

PART = attention(shapes=TYPICAL[:1], own=published(*ONE_HEAD) | LARGE, ceiling="matmul")
