"""Decoding: one query for each sequence, against a cache of keys and values.

Successive calls read different caches, 2 GiB of them or more, so that none is found in
the L2 cache: so it is in a model, where each layer has its own. They are captured in
one CUDA graph, as a server does: a call is shorter than the Python that makes it.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch

from benchmarks import peers, timing
from benchmarks.calls import Call, prepare
from benchmarks.part import Part, Shape, Trial
from benchmarks.parts.attention import check

SNIPPETS = (
    "attention/flash2_causal.py",
    "attention/split_kv.py",
    "attention/split_kv_overlapped.py",
    "attention/paged_kv.py",
)
FACTS = {"dtype": "bfloat16", "heads": 32, "kv_heads": 8, "head_dim": 128}
BATCHES = (1, 4, 16, 64)
SEQS = (1024, 4096, 16384, 32768, 65536, 131072)


def trial(shape: Shape) -> Trial:
    """All kernels, on as many caches as it takes to fill a round."""
    k_size = shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim
    cache_bytes = 2 * math.prod(k_size) * getattr(torch, shape.dtype).itemsize
    rounds = math.ceil(timing.ROUND / cache_bytes)
    caches = timing.normal(rounds, 2, *k_size, dtype=shape.dtype)
    q_size = shape.batch, shape.heads, 1, shape.head_dim
    q = timing.normal(*q_size, dtype=shape.dtype)

    def turns(make: Callable[..., Call], *names: str, **options: Any) -> list[Call]:
        return [make(*names, q, k, v, **options) for k, v in caches]

    return Trial(
        own={name: partial(turns, prepare, name) for name in SNIPPETS},
        peers={
            "sdpa-flash": partial(turns, peers.sdpa, "sdpa-flash", enable_gqa=True),
            "sdpa-efficient": partial(turns, peers.grouped_rows, "sdpa-efficient"),
            "flex_attention": lambda: turns(peers.flex_decode(q, shape.seq_k)),
            # As many parts as it thinks best.
            "fa3-fwd": partial(turns, peers.fa3, num_splits=0),
        },
        check=lambda name, result: check(q, *caches[-1], result),
        work={"bytes": cache_bytes},
    )


PART = Part(
    own=SNIPPETS,
    shapes=lambda: (
        Shape(**FACTS, batch=batch, seq_k=seq) for batch, seq in product(BATCHES, SEQS)
    ),
    trial=trial,
    compiled=("flex_attention",),
    ceiling="copy",
)
