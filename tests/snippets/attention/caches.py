"""Caches of keys and values whose sequences differ in length; and in pages."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tests.harness.poison import Poison, under_memcheck

NAN = float("nan")


def with_lengths(
    method: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: Sequence[int],
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of a method that takes all keys, sequence by sequence."""
    parts = [
        method(q[i : i + 1], k[i : i + 1, :, :n], v[i : i + 1, :, :n], **options)
        for i, n in enumerate(lengths)
    ]
    o, lse = (torch.cat(part) for part in zip(*parts, strict=True))
    return o, lse


def paged(
    k: torch.Tensor, v: torch.Tensor, lengths: Sequence[int], page_size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """k and v [batch, kv_heads, seq, head_dim] in pages, in any order.

    Returns:
        k, v: [pages, page_size, kv_heads, head_dim]; NaN in every slot without a key,
            and in pages that belong to nobody.
        block_table: [batch, max_pages], int32; -1 where there is no page.
        seq_lens: [batch], int32.
    """
    counts = [-(-n // page_size) for n in lengths]
    pages = sum(counts) + 2
    generator = torch.Generator().manual_seed(pages)
    order = iter(torch.randperm(pages, generator=generator).tolist())
    table = torch.full((len(counts), max(counts, default=0) + 1), -1, dtype=torch.int32)
    caches = [x.new_full((pages, page_size, *k.shape[1::2]), NAN) for x in (k, v)]
    for i, n in enumerate(lengths):
        for at in range(counts[i]):
            table[i, at] = page = next(order)
            some = slice(at * page_size, min(n, (at + 1) * page_size))
            for cache, x in zip(caches, (k, v), strict=True):
                keys = x[i, :, some].transpose(0, 1)
                cache[page, : len(keys)] = keys
    seq_lens = torch.tensor(list(lengths), dtype=torch.int32)
    return *caches, table.to(k.device), seq_lens.to(k.device)


@triton.jit
def negate_kernel(x_ptr, size, BLOCK: tl.constexpr):
    """x becomes -x, slowly; the launch after it may start at once."""
    tl.extra.cuda.gdc_launch_dependents()
    tl.extra.cuda.gdc_wait()
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < size)
        tl.store(x_ptr + offs, -x, mask=offs < size)


def check_that_launches_wait(
    step: Callable[[torch.Tensor], torch.Tensor],
    q: torch.Tensor,
    k: torch.Tensor,
    poisoned: Poison,
) -> None:
    """Each step asks with the output of the one before, and must find it complete.

    As one CUDA graph, nothing keeps the launches apart but what they do themselves.
    First the steps follow each other at once, then another launch negates all keys
    before each of them.
    """
    if under_memcheck():
        pytest.skip("memory for a CUDA graph comes from torch's cache")
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("before Hopper no launch starts before the one before it has ended")

    def negate() -> None:
        # Few programs: they leave room for those of the next launch.
        negate_kernel[(32,)](k, k.numel(), BLOCK=1024, launch_pdl=True)

    def steps(first: Callable[[], object], then: Callable[[], object]) -> list:
        chain = [q]
        for _ in range(30):  # an even number: the keys are as before
            first()
            then()
            chain.append(step(chain[-1]))
            then()
        return chain

    with poisoned.lifted():
        for first in (lambda: None, negate):
            right = steps(first, torch.cuda.synchronize)
            for before, after in pairwise(right):
                assert not torch.equal(before, after), "a repeated step hides a race"
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                chain = steps(first, lambda: None)
            for _ in range(20):
                for o in chain[1:]:
                    o.fill_(NAN)
                graph.replay()
                torch.cuda.synchronize()
                for o, expected in zip(chain, right, strict=True):
                    assert torch.equal(o, expected)
