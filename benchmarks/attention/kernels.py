"""What is timed: the published kernels by hand, and the peers."""

import importlib
import importlib.util
from collections.abc import Callable
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

Tensor = torch.Tensor
Attention = Callable[[Tensor, Tensor, Tensor], Any]

BATCHED = (
    "flash2",
    "flash2_causal",
    "flash2_tuned",
    "flash2_descriptors",
    "flash2_persistent",
)
ONE_HEAD = ("flash1", "flash2_single_head")  # they take [seq, head_dim]
NOT_CAUSAL = ("flash2", *ONE_HEAD)
# The published files that each part of the record measures.
NAMES: dict[str, tuple[str, ...]] = {
    "forward": ("naive", *BATCHED),
    "fp8": ("flash2_fp8",),
    "head": ("naive", *ONE_HEAD, "flash2"),
    "decode": ("flash2_causal", "split_kv", "paged_kv"),
    "window": ("flash2_window",),
    "varlen": ("varlen", "flash2_causal"),
    "memory": (
        *("naive", *ONE_HEAD, *BATCHED, "flash2_window"),
        *("flash2_fp8", "varlen", "split_kv"),
    ),
}
# Longer, its score matrices do not fit, or leave no room for anything else.
LONGEST = {("forward", "naive"): 8192, ("memory", "naive"): 65536}
BACKENDS = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
}


def path(name: str) -> str:
    """How the record calls a published file."""
    return f"attention/{name}.py"


def published(part: str, seq: int, causal: bool = False) -> dict[str, Attention]:
    """The kernels of a part that take such a shape, by the path of the file."""
    found: dict[str, Attention] = {}
    for name in NAMES[part]:
        attention = importlib.import_module(f"snippets.attention.{name}").attention
        if seq > LONGEST.get((part, name), seq) or (causal and name in NOT_CAUSAL):
            continue
        if name in ONE_HEAD:
            attention = partial(one_head, attention)
        elif causal:
            attention = partial(attention, causal=True)
        found[path(name)] = attention
    return found


def one_head(attention: Attention, q: Tensor, k: Tensor, v: Tensor) -> Any:
    """Give a batch of one head to a kernel that takes [seq, head_dim]."""
    return attention(q[0, 0], k[0, 0], v[0, 0])


def sdpa(backend: SDPBackend, **options: Any) -> Attention:
    """PyTorch's own attention, by one of its backends and no other."""

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, **options)

    return call


def grouped_rows(backend: SDPBackend) -> Attention:
    """The queries that share a head of k as rows of one head: no backend minds that."""

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, heads, _, head_dim = q.shape
        kv_heads = k.shape[1]
        rows = q.view(batch, kv_heads, heads // kv_heads, head_dim)
        return sdpa(backend)(rows, k, v).reshape(q.shape)

    return call


def flex(causal: bool, seq: int, window: int | None = None) -> Attention:
    """FlexAttention, compiled anew: for one shape, as its authors advise."""

    def seen(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (i - j < window) if window else i >= j

    mask = None
    if causal:
        mask = create_block_mask(seen, None, None, seq, seq, device="cuda")
    return compiled_flex(block_mask=mask)


def flex_decode(seq: int) -> Attention:
    """FlexAttention for one query, with a mask that hides nothing.

    Without any mask it would leave all keys to a single program of each head.
    """
    mask = create_block_mask(noop_mask, None, None, 1, seq, device="cuda")
    return compiled_flex(block_mask=mask, enable_gqa=True)


def compiled_flex(**options: Any) -> Attention:
    """FlexAttention, compiled without a memory of other shapes."""
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # processes of its own would not pay
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return lambda q, k, v: compiled(q, k, v, **options)


def fa3_module() -> Any:
    """The package fa3-fwd, or None if it is not installed."""
    if importlib.util.find_spec("fa3_fwd_interface"):
        return importlib.import_module("fa3_fwd_interface")
    return None


def fa3(**options: Any) -> dict[str, Attention]:
    """FlashAttention-3 on [batch, heads, seq, head_dim], if it is installed."""
    module = fa3_module()
    if module is None:
        return {}

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # it wants seq before heads
        return module.flash_attn_func(q, k, v, **options).transpose(1, 2)

    return {"fa3-fwd": call}


def versions() -> dict[str, str]:
    """The versions of the peers that PyTorch's does not determine."""
    number = torch.backends.cudnn.version() or 0
    found = {"cudnn": f"{number // 10000}.{number // 100 % 100}.{number % 100}"}
    if fa3_module():
        found["fa3-fwd"] = metadata.version("fa3-fwd")
    return found
