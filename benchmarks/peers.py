"""Whom the kernels are compared with. A peer is made for its inputs, then called."""

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import metadata
from typing import Any

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import (
    create_block_mask,
    flex_attention,
    noop_mask,
)

from benchmarks.calls import Call

Tensor = torch.Tensor

BACKENDS = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
}


def compiled_softmax(x: Tensor) -> Call:
    """PyTorch's own kernel for this very shape."""
    torch._dynamo.reset()
    softmax = torch.compile(lambda x: torch.softmax(x, dim=-1), dynamic=False)
    return lambda: softmax(x)


def liger_softmax(x: Tensor) -> Call:
    """The softmax of the package liger-kernel; it refuses longer rows than 65536."""
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    return lambda: LigerSoftmaxFunction.apply(x)


def softmax_gradient(x: Tensor, dy: Tensor) -> Call:
    """The backward pass of PyTorch's own softmax."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        y = torch.softmax(leaf, dim=-1)
    return lambda: torch.autograd.grad(y, leaf, dy, retain_graph=True)


def sdpa(
    name: str, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, **options: Any
) -> Call:
    """PyTorch's own attention, by one of its backends and no other."""

    def call() -> Tensor:
        with sdpa_kernel(BACKENDS[name]):
            attention = F.scaled_dot_product_attention
            return attention(q, k, v, is_causal=causal, **options)

    return call


def grouped_rows(name: str, q: Tensor, k: Tensor, v: Tensor) -> Call:
    """The queries that share a head of k as rows of one head: no backend minds that."""
    batch, heads, _, head_dim = q.shape
    rows = q.view(batch, k.shape[1], heads // k.shape[1], head_dim)
    call = sdpa(name, rows, k, v)
    return lambda: call().reshape(q.shape)


def flex(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, window: int | None = None
) -> Call:
    """FlexAttention, compiled for one shape, as its authors advise."""

    def seen(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (i - j < window) if window else i >= j

    mask, seq = None, q.shape[2]
    if causal:
        mask = create_block_mask(seen, None, None, seq, seq, device=q.device)
    return partial(compiled_flex(), q, k, v, block_mask=mask)


def flex_decode(q: Tensor, seq_k: int) -> Callable[..., Call]:
    """FlexAttention for one query, with a mask that hides nothing.

    Without any mask it would leave all keys to a single program of each head.
    """
    mask = create_block_mask(noop_mask, None, None, 1, seq_k, device=q.device)
    call = partial(compiled_flex(), block_mask=mask, enable_gqa=True)
    return lambda q, k, v: partial(call, q, k, v)


def compiled_flex() -> Any:
    """FlexAttention, compiled without a memory of other shapes."""
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # processes of its own would not pay
    return torch.compile(flex_attention, dynamic=False, fullgraph=True)


def fa3(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Call:
    """FlashAttention-3, which wants the sequence before the heads."""
    attention = importlib.import_module("fa3_fwd_interface").flash_attn_func
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    return lambda: attention(*rows, **options).transpose(1, 2)


def fa3_varlen(q: Tensor, k: Tensor, v: Tensor, starts: Tensor, longest: int) -> Call:
    """The same on packed sequences."""
    attention = importlib.import_module("fa3_fwd_interface").flash_attn_varlen_func
    shapes = starts, starts, longest, longest
    return partial(attention, q, k, v, *shapes, causal=True)


# Peers that take a whole batch of heads, and a causal mask.
ATTENTION: dict[str, Callable[..., Call]] = {
    **{name: partial(sdpa, name) for name in BACKENDS},
    "flex_attention": flex,
    "fa3-fwd": fa3,
}


def versions() -> dict[str, str]:
    """The versions of the peers that PyTorch's does not determine."""
    number = torch.backends.cudnn.version() or 0
    found = {"cudnn": f"{number // 10000}.{number // 100 % 100}.{number % 100}"}
    for package in ("fa3-fwd", "liger-kernel"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
