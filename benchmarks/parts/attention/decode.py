"""Decoding: one query for each sequence, against a cache of keys and values.

Successive calls read different caches, 2 GiB of them or more, so that none is found in
the L2 cache: so it is in a model, where each layer has its own. They are captured in
one CUDA graph, as a server does: a call is shorter than the Python that makes it.
"""

import importlib
import math
from contextlib import suppress
from functools import cache, partial
from importlib import metadata
from typing import Any

import torch
from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import PAGE, Call, Inputs, load, paged
from benchmarks.part import Shape, published
from benchmarks.parts.attention import attention

FACTS = {"dtype": "bfloat16", "heads": 32, "kv_heads": 8, "head_dim": 128}
BATCHES = (1, 4, 16, 64)
SEQS = (1024, 4096, 16384, 32768, 65536, 131072)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """The bytes of keys and values; of a peer that no other list has, its version."""
    numbers = 2 * shape.batch * shape.kv_heads * shape.seq_k * shape.head_dim
    found = {"bytes": numbers * timing.itemsize(shape)}
    if name == "flashinfer":
        with suppress(metadata.PackageNotFoundError):
            found["version"] = metadata.version("flashinfer-python")
    return found


def caches(shape: Shape) -> list[Inputs]:
    """A query, and as many caches as it takes to fill a round."""
    count = math.ceil(timing.ROUND / facts("", shape)["bytes"])
    size = shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim
    kv = timing.normal(count, 2, *size, dtype=shape.dtype)
    size = shape.batch, shape.heads, 1, shape.head_dim
    q = timing.normal(*size, dtype=shape.dtype)
    return [{"q": q, "k": k, "v": v} for k, v in kv]


def flashinfer(**inputs: Tensor) -> Call:
    """FlashInfer, of pages like ours; how to share out the work is planned before."""
    library = importlib.import_module("flashinfer")
    given = paged(load("attention/paged_kv.py"), inputs)
    (batch, heads, _, head_dim), kv_heads = inputs["q"].shape, inputs["k"].shape[1]
    pages = given["block_table"].shape[1]
    wrapper = library.BatchDecodeWithPagedKVCacheWrapper(
        workspace(), use_tensor_cores=True
    )
    wrapper.plan(
        torch.arange(batch + 1, dtype=torch.int32) * pages,
        given["block_table"].flatten(),
        torch.full((batch,), PAGE, dtype=torch.int32),
        *(heads, kv_heads, head_dim, PAGE),
        q_data_type=inputs["q"].dtype,
    )
    q, kv = inputs["q"][:, :, 0], (given["k"], given["v"])
    return lambda: wrapper.run(q, kv).unsqueeze(2)


@cache
def workspace() -> Tensor:
    """What FlashInfer keeps its partial results in, as large as it advises."""
    return torch.zeros(2**27, dtype=torch.uint8, device="cuda")


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
        "flashinfer": flashinfer,
    },
    facts=facts,
    ceiling="copy",
)
