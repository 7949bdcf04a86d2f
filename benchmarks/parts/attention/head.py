"""One head, for the rungs that take no more, beside the rungs next to them.

FlashAttention-1 is launched for each tile of keys, so it is here with large ones too.
"""

from benchmarks import peers
from benchmarks.part import published
from benchmarks.parts.attention import LARGE, ONE_HEAD, SEQS, attention, shape

PART = attention(
    shapes=[shape(d, seq, 1, 1, causal=False) for d in (64, 128) for seq in SEQS],
    own=published("attention/naive.py", *ONE_HEAD, "attention/flash2.py") | LARGE,
    peers={"sdpa-flash": peers.sdpa_flash},
)
