"""Decoding: one query for each sequence, against a cache of keys and values.

Successive calls read different caches, 2 GiB of them or more, so that none is found in
the L2 cache: so it is in a model, where each layer has its own. The calls are captured
in one CUDA graph, as a server does: a call is shorter than the Python that makes it.
"""

import gc
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks import timing
from benchmarks.attention import kernels
from benchmarks.attention.measure import Maker, check_rows, measure
from benchmarks.attention.run import Run

HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
BATCHES = (1, 4, 16, 64)
SEQS = (1024, 4096, 16384, 32768, 65536, 131072)
ROUND = 2**31  # bytes of the caches that are read in turn
PAGE = 16  # keys


def own(caches: torch.Tensor) -> dict[str, kernels.Attention]:
    """The published kernels on these caches, or on the same caches in pages."""
    found = kernels.published("decode", caches.shape[-2])
    name = kernels.path("paged_kv")
    return found | {name: paged(found[name], caches)}


def paged(attention: Callable[..., Any], caches: torch.Tensor) -> kernels.Attention:
    """A kernel that finds its keys in pages, which lie in a random order."""
    batch, seq = caches.shape[2], caches.shape[4]
    count = batch * seq // PAGE
    order = torch.randperm(count, device=caches.device)
    block_table = order.view(batch, -1).int()
    seq_lens = torch.full_like(block_table[:, 0], seq)
    pages = {}
    for x in caches.flatten(0, 1):
        rows = x.view(batch, KV_HEADS, seq // PAGE, PAGE, HEAD_DIM)
        y = x.new_empty(count, PAGE, KV_HEADS, HEAD_DIM)
        for i, where in enumerate(order.view(batch, -1)):
            y[where] = rows[i].permute(1, 2, 0, 3)
        pages[x.data_ptr()] = y

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        k, v = (pages[x.data_ptr()] for x in (k, v))
        return attention(q, k, v, block_table, seq_lens)

    return call


def peers(seq: int) -> dict[str, Maker]:
    """How to make each peer; making one may fail too."""
    flash = kernels.BACKENDS["sdpa-flash"]
    efficient = kernels.BACKENDS["sdpa-efficient"]
    found = kernels.fa3(num_splits=0).items()  # 0: as many as it thinks best
    return {
        "sdpa-flash": partial(kernels.sdpa, flash, enable_gqa=True),
        "sdpa-efficient": partial(kernels.grouped_rows, efficient),
        "flex_attention": partial(kernels.flex_decode, seq),
        **{name: lambda call=call: call for name, call in found},
    }


def measured(run: Run, batch: int, seq: int, copy: float) -> list[dict[str, Any]]:
    """The entries of one shape, with the bytes of K and V."""
    shape = {"batch": batch, "heads": HEADS, "kv_heads": KV_HEADS}
    shape |= {"head_dim": HEAD_DIM, "seq_k": seq}
    size = 2 * batch * KV_HEADS * seq * HEAD_DIM * torch.bfloat16.itemsize
    rounds = math.ceil(ROUND / size)
    q = timing.inputs(batch * HEADS, HEAD_DIM, torch.bfloat16)
    q = q.view(batch, HEADS, 1, HEAD_DIM)
    caches = timing.inputs(2 * rounds, size // 4, torch.bfloat16)
    caches = caches.view(rounds, 2, batch, KV_HEADS, seq, HEAD_DIM)

    def in_turn(call: kernels.Attention) -> Callable[[], None]:
        return timing.graph([partial(call, q, k, v) for k, v in caches])

    last = [q, *caches[-1]]
    check = partial(check_rows, *last, False)
    mine, others = own(caches), peers(seq)
    found = measure(run, "decode", shape, mine, others, last, check, in_turn)
    for entry in found:
        entry["seconds"] /= rounds
        entry["bytes"] = size
        entry["bytes_per_second"] = size / entry["seconds"]
        entry["fraction_of_copy"] = entry["bytes_per_second"] / copy
    return found


def decode(run: Run, copy: float) -> None:
    """Every shape of the part `decode`."""
    for batch in BATCHES:
        for seq in SEQS:
            run.add(
                "decode",
                measured(run, batch, seq, copy),
                lambda entry: f"{entry['fraction_of_copy']:.3f}",
            )
            torch._dynamo.reset()  # what it holds of this shape may be half a GPU
            gc.collect()
            torch.cuda.empty_cache()
