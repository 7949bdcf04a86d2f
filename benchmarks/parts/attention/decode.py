"""Decoding: one query for each sequence, against a cache of keys and values.

Successive calls read different caches, 2 GiB of them or more, so that none is found in
the L2 cache: so it is in a model, where each layer has its own. They are captured in
one CUDA graph, as a server does: a call is shorter than the Python that makes it.
"""

import math
from functools import partial
from typing import Any

from benchmarks import peers, timing
from benchmarks.calls import Inputs
from benchmarks.part import Shape, published
from benchmarks.parts.attention import attention

FACTS = {"dtype": "bfloat16", "heads": 32, "kv_heads": 8, "head_dim": 128}
BATCHES = (1, 4, 16, 64)
SEQS = (1024, 4096, 16384, 32768, 65536, 131072)


def cache(name: str, shape: Shape) -> dict[str, Any]:
    """The bytes of keys and values."""
    numbers = 2 * shape.batch * shape.kv_heads * shape.seq_k * shape.head_dim
    return {"bytes": numbers * timing.itemsize(shape)}


def caches(shape: Shape) -> list[Inputs]:
    """A query, and as many caches as it takes to fill a round."""
    count = math.ceil(timing.ROUND / cache("", shape)["bytes"])
    size = shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim
    kv = timing.normal(count, 2, *size, dtype=shape.dtype)
    size = shape.batch, shape.heads, 1, shape.head_dim
    q = timing.normal(*size, dtype=shape.dtype)
    return [{"q": q, "k": k, "v": v} for k, v in kv]


PART = attention(
    shapes=[Shape(**FACTS, batch=b, seq_k=seq) for b in BATCHES for seq in SEQS],
    inputs=caches,
    own=published(
        "attention/flash2_causal.py",
        "attention/split_kv.py",
        "attention/split_kv_overlapped.py",
        "attention/paged_kv.py",
    ),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-efficient": peers.grouped_rows,
        "flex_attention": peers.flex,
        "fa3-fwd": partial(peers.fa3, num_splits=0),  # as many as it thinks best
    },
    facts=cache,
    ceiling="copy",
)
