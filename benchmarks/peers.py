"""Whom the kernels are compared with. A peer is made for its inputs, then called."""

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib import metadata
from typing import Any

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import (
    create_block_mask,
    flex_attention,
    noop_mask,
)

from benchmarks.calls import Call, backward, boundaries, pack

# Those that are compiled for each shape.
COMPILED = {"flex_attention", "torch.compile"}


def copy(x: Tensor, **others: Tensor) -> Call:
    """What a copy takes: one read and one write."""
    return partial(torch.empty_like(x).copy_, x)


def torch_softmax(x: Tensor) -> Call:
    """PyTorch's own."""
    return partial(torch.softmax, x, dim=-1)


def softmax_gradient(x: Tensor, dy: Tensor) -> Call:
    """The backward pass of the same."""
    return backward(partial(torch.softmax, dim=-1), dy, x)


def compiled_softmax(x: Tensor) -> Call:
    """PyTorch's own kernel for this very shape."""
    torch._dynamo.reset()
    softmax = torch.compile(lambda x: torch.softmax(x, dim=-1), dynamic=False)
    return partial(softmax, x)


def liger_softmax(x: Tensor) -> Call:
    """The softmax of the package liger-kernel; it refuses longer rows than 65536."""
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    return partial(LigerSoftmaxFunction.apply, x)


def sdpa(
    backend: SDPBackend, q: Tensor, k: Tensor, v: Tensor, causal: bool = False
) -> Call:
    """PyTorch's own attention, by one of its backends and no other."""
    grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}

    def call() -> Tensor:
        with sdpa_kernel(backend):
            attention = F.scaled_dot_product_attention
            return attention(q, k, v, is_causal=causal, **grouped)

    return call


sdpa_flash = partial(sdpa, SDPBackend.FLASH_ATTENTION)
sdpa_efficient = partial(sdpa, SDPBackend.EFFICIENT_ATTENTION)
sdpa_cudnn = partial(sdpa, SDPBackend.CUDNN_ATTENTION)


def grouped_rows(q: Tensor, k: Tensor, v: Tensor) -> Call:
    """The queries that share a head of k as rows of one head.

    The memory-efficient backend takes no fewer heads of keys than of queries.
    """
    batch, heads, _, head_dim = q.shape
    rows = q.view(batch, k.shape[1], heads // k.shape[1], head_dim)
    call = sdpa_efficient(rows, k, v)
    return lambda: call().reshape(q.shape)


def flex(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, window: int | None = None
) -> Call:
    """FlexAttention, compiled for one shape, as its authors advise."""
    return partial(compiled_flex(q.shape, k.shape, q.device, causal, window), q, k, v)


@lru_cache(maxsize=1)
def compiled_flex(
    q: torch.Size, k: torch.Size, device: torch.device, causal: bool, window: int | None
) -> Callable[..., Tensor]:
    """FlexAttention, compiled without a memory of other shapes."""

    def seen(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (i - j < window) if window else i >= j

    hides = seen if causal else None
    if q[2] == 1:  # without any mask it leaves all keys to one program of each head
        hides = noop_mask
    lengths = q[2], k[2]
    mask = hides and create_block_mask(hides, None, None, *lengths, device=device)
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # processes of its own would not pay
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return partial(compiled, block_mask=mask, enable_gqa=q[1] != k[1])


def fa3(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Call:
    """FlashAttention-3, which wants the sequence before the heads."""
    attention = importlib.import_module("fa3_fwd_interface").flash_attn_func
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    return lambda: attention(*rows, **options).transpose(1, 2)


def fa3_varlen(
    q: Tensor, k: Tensor, v: Tensor, lengths: Sequence[int], causal: bool
) -> Call:
    """The same on the sequences of a padded batch, which it gets packed."""
    attention = importlib.import_module("fa3_fwd_interface").flash_attn_varlen_func
    tokens, starts = [pack(x, lengths) for x in (q, k, v)], boundaries(q, lengths)
    shapes = starts, starts, max(lengths), max(lengths)
    return partial(attention, *tokens, *shapes, causal=causal)


def versions() -> dict[str, str]:
    """The versions of the peers that PyTorch's does not determine."""
    number = torch.backends.cudnn.version() or 0
    found = {"cudnn": f"{number // 10000}.{number // 100 % 100}.{number % 100}"}
    for package in ("fa3-fwd", "liger-kernel"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
