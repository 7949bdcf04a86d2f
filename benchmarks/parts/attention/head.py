"""One head, for the rungs that take no more, beside the rungs next to them.

FlashAttention-1 is launched for each tile of keys, so it is here with large ones too.
"""

from itertools import product, starmap

from benchmarks.part import Part
from benchmarks.parts.attention import LARGE, ONE_HEAD, SEQS, compare, one_head

OWN = ("attention/naive.py", *ONE_HEAD, "attention/flash2.py")

PART = Part(
    own=(*OWN, *LARGE),
    shapes=lambda: starmap(one_head, product((64, 128), SEQS)),
    trial=lambda shape: compare(shape, OWN, ["sdpa-flash"], variants=LARGE),
)
