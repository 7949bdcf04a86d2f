"""Tests of snippets/attention/paged_kv.py."""

import re
from typing import Any

import pytest
import torch
import triton

from snippets.attention import paged_kv
from tests.harness.inputs import HEAD_DIMS, INTERPRETED, far_apart, name, qkv
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import Poison, guarded
from tests.snippets.attention.caches import (
    check_that_launches_wait,
    paged,
    with_lengths,
)
from tests.snippets.attention.reference import baseline, reference
from tests.snippets.attention.suite import Attention

INF = float("inf")
NAN = float("nan")
SMALL = {"splits": 3, "block_n": 16}
LENGTHS = [100, 0, 1, 47, 48, 49, 17]
HALVES = (torch.float16, torch.bfloat16)
dtypes = pytest.mark.parametrize(
    "dtype",
    # The interpreter does not multiply bfloat16 rightly.
    [torch.float16, torch.float32, *(() if INTERPRETED else (torch.bfloat16,))],
    ids=name,
)


def compare(
    result: tuple[torch.Tensor, torch.Tensor],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: list[int],
    **options: Any,
) -> None:
    """Hold o and lse against attention to the keys of each sequence."""
    expected = with_lengths(reference, q, k, v, lengths, **options)
    own = with_lengths(baseline, q, k, v, lengths, **options)
    Attention().compare(result, expected, own)


def check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: list[int],
    page_size: int = 8,
    **options: Any,
) -> None:
    """Put k and v into pages, run the kernel, and hold its results to the rule."""
    inputs = [guarded(x) for x in (q, *paged(k, v, lengths, page_size))]
    result = paged_kv.attention(*inputs, **{**SMALL, **options})
    asked = {word: options[word] for word in ("causal", "scale") if word in options}
    compare(result, q, k, v, lengths, **asked)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("page_size", [8, 1, 7, 16, 64])
def test_every_page_size(
    page_size: int,
    causal: bool,
    device: str,
) -> None:
    tensors = qkv((7, 2), (7, 1), 3, 100, 16, torch.float32, device)
    options = {"page_size": page_size, "causal": causal}
    check(*tensors, LENGTHS, **options)


@dtypes
def test_every_dtype(dtype: torch.dtype, device: str) -> None:
    tensors = qkv((2, 4), (2, 2), 3, 50, 24, dtype, device)
    check(*tensors, [50, 33], causal=True)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_every_head_dim(head_dim: int, device: str) -> None:
    tensors = qkv((1, 2), (1, 1), 2, 40, head_dim, torch.float16, device)
    check(*tensors, [40])


@pytest.mark.parametrize(("group", "seq_q"), [(1, 1), (5, 9), (40, 1)])
def test_every_group(group: int, seq_q: int, device: str) -> None:
    inputs = qkv((2, 2 * group), (2, 2), seq_q, 50, 16, torch.float16, device)
    check(*inputs, [50, 33], causal=True)


def test_every_block_size_and_number_of_parts(device: str) -> None:
    tensors = qkv((2, 2), (2, 1), 1, 150, 16, torch.float16, device)
    for splits, block_n in ((1, 32), (8, 64), (200, 16), (None, 128), (None, None)):
        options = {"splits": splits, "block_n": block_n}
        check(*tensors, [150, 90], **options)


@pytest.mark.parametrize("scale", [0.0, 1.0, -0.3])
def test_every_scale(scale: float, device: str) -> None:
    tensors = qkv((1, 2), (1, 1), 2, 40, 16, torch.float32, device)
    check(*tensors, [40], scale=scale)


def test_no_two_strides_alike(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
    k_pages, v_pages, *rest = paged(k, v, [40, 21], 8)
    for axis in range(4):
        k_pages = k_pages.repeat_interleave(axis + 2, dim=axis)
        v_pages = v_pages.repeat_interleave(axis + 3, dim=axis)
    k_pages, v_pages = k_pages[::2, ::3, ::4, ::5], v_pages[::3, ::4, ::5, ::6]
    q = q.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    inputs = (guarded(x) for x in (q, k_pages, v_pages, *rest))
    result = paged_kv.attention(*inputs, **SMALL)
    compare(result, q, k, v, [40, 21])


def test_pages_that_are_shared(device: str) -> None:
    # Two sequences begin with the same 16 keys: the same pages hold them.
    q, k, v = qkv((2, 2), (2, 1), 1, 30, 16, torch.float32, device)
    k[1, :, :16], v[1, :, :16] = k[0, :, :16], v[0, :, :16]
    k_pages, v_pages, table, seq_lens = paged(k, v, [30, 25], 8)
    table[1, :2] = table[0, :2]
    result = paged_kv.attention(q, k_pages, v_pages, table, seq_lens, **SMALL)
    compare(result, q, k, v, [30, 25])


def test_scores_of_minus_inf_and_nan(device: str) -> None:
    q, k, v = qkv((2, 2), (2, 1), 1, 90, 16, torch.float32, device)
    q = q.abs() + 0.1
    k[0, :, 16:70, 0] = -INF
    k[1, :, 40, 0] = NAN
    check(q, k, v, [90, 90])


def test_wrong_tables_lead_nowhere(device: str) -> None:
    # The fixtures look at every address.
    q, k, v = qkv((2, 2), (2, 1), 2, 40, 16, torch.float32, device)
    inputs = [guarded(x) for x in (q, *paged(k, v, [40, 40], 8))]
    for page in (-1, 12, 2**31 - 1, -(2**31)):
        for length in (40, 1000, 2**31 - 1, -1, -(2**31)):
            inputs[3].fill_(page)
            inputs[4].fill_(length)
            o, lse = paged_kv.attention(*inputs, **SMALL)
            if length < 0:
                assert (o == 0).all()
                assert (lse == -INF).all()


@pytest.mark.parametrize("empty", ["keys", "pages", "table", "queries", "batch"])
def test_empty(empty: str, device: str) -> None:
    q, k, v = qkv((2, 2), (2, 1), 3, 40, 16, torch.float32, device)
    k, v, table, seq_lens = paged(k, v, [40, 40], 8)
    if empty == "keys":
        seq_lens.zero_()
    if empty == "pages":
        k, v = k[:0], v[:0]
    if empty == "table":
        table = table[:, :0].contiguous()
    if empty == "queries":
        q = q[:, :, :0]
    if empty == "batch":
        q, table, seq_lens = q[:0], table[:0], seq_lens[:0]
    o, lse = paged_kv.attention(q, k, v, table, seq_lens, **SMALL)
    assert (o.shape, lse.shape) == (q.shape, q.shape[:3])
    assert (o == 0).all()
    assert (lse == -INF).all()


@pytest.mark.large
def test_pages_beyond_31_bits(device: str) -> None:
    q, k, v = qkv((1, 2), (1, 1), 1, 5, 3, torch.float16, device)
    k_pages, v_pages, table, seq_lens = paged(k, v, [5], 2)
    wide = [
        far_apart(x.shape, axis, torch.float16, device, seed=0).copy_(x)
        for axis, x in ((0, k_pages), (0, v_pages))
    ]
    result = paged_kv.attention(q, *wide, table, seq_lens, **SMALL)
    compare(result, q, k, v, [5])


def refused(match: str, *inputs: Any, **options: Any) -> None:
    """The call must raise a ValueError whose message begins so."""
    with pytest.raises(ValueError, match=f"^{match}"):
        paged_kv.attention(*inputs, **options)


def test_refuses_other_tensors(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
    k, v, *rest = paged(k, v, [40, 40], 8)
    refused(r"q has 3 dimensions; .*batch, heads, seq, head_dim", q[0], k, v, *rest)
    refused(r"k has 5 dimensions; .*pages, page_size", q, k[None], v, *rest)
    refused(r"v has 3 dimensions; .*pages, page_size", q, k, v[0], *rest)
    for dtype in (torch.float64, torch.int32):
        x, y, z = (x.to(dtype) for x in (q, k, v))
        refused(f"q is {dtype}; it must be", x, y, z, *rest)
    refused(r"k is torch.float16 on", q, k.half(), v, *rest)
    refused(r"v is .*on meta; it must be", q, k, v.to("meta"), *rest)
    big = (x.repeat_interleave(17, dim=-1)[..., :257] for x in (q, k, v))
    refused(r"q has head_dim 257; it must", *big, *rest)
    refused(r"q has head_dim 0; it must", *(x[..., :0] for x in (q, k, v)), *rest)
    many = torch.empty((256, 256, 1, 16), device=device)
    refused(r"q has 256 \* 256 heads; it must", many, k, v, *rest)
    many = torch.empty((1, 1, 1, 16), device=device).expand(2, 64, 2**24, 16)
    refused(r"q has 2 \* 64 heads of .*; it must have at", many, k, v, *rest)
    refused(r"k has page_size 0; it must", q, k[:, :0], v[:, :0], *rest)
    for heads in (3, 0):
        x = torch.empty((12, 8, heads, 16), device=device)
        refused(f"k has {heads} heads; it must divide q's 4", q, x, x, *rest)
    refused(r"k has head_dim 15; it must be q's 16", q, k[..., :15], v, *rest)
    for x in (v[:5], v[:, :4], v[:, :, :1], v[..., :15]):
        refused(r"v has shape .*; it must be k's", q, k, x, *rest)


def test_refuses_the_cpu_without_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, "cpu")
    inputs = q, *paged(k, v, [40, 40], 8)
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    refused("q is on cpu; .*TRITON_INTERPRET", *inputs)


def test_refuses_bfloat16_under_the_interpreter(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.bfloat16, device)
    inputs = q, *paged(k, v, [40, 40], 8)
    monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
    refused("q is bfloat16.*interpreter", *inputs)


def test_launches_on_the_device_of_q(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
    inputs = q, *paged(k, v, [40, 40], 8)
    check_where_it_launches(paged_kv.attention, *inputs, **SMALL)


def test_refuses_other_tables(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
    k, v, table, seq_lens = paged(k, v, [40, 40], 8)
    doubled = table.repeat_interleave(2, dim=1)[:, ::2]
    for x in (
        table[0],
        table[:1],
        table[None],
        table[..., None],
        table[:, 0].contiguous(),
        table.long(),
        table.to("meta"),
        doubled,
    ):
        match = (
            r"block_table is torch.int.*; it must be torch.int32 \[2, max_pages\] on"
        )
        refused(match, q, k, v, x, seq_lens)
    doubled = seq_lens.repeat_interleave(2)[::2]
    for x in (
        seq_lens[:1],
        seq_lens[None],
        seq_lens[:, None],
        seq_lens.long(),
        doubled,
    ):
        match = r"seq_lens is torch.int.* on .*; it must be torch.int32 \[2\] on"
        refused(match, q, k, v, table, x)


def test_refuses_other_options(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
    inputs = q, *paged(k, v, [40, 40], 8)
    for option, values in {
        "scale": (INF, NAN, 3.5e38),
        "input_precision": ("TF32", None),
        "splits": (0, 257, 1.5),
        "block_n": (0, 8, 24, 512),
    }.items():
        for bad in values:
            match = f"{option} is '?{re.escape(str(bad))}'?; it must be"
            refused(match, *inputs, **{option: bad})


@pytest.mark.gpu
@pytest.mark.parametrize("half", HALVES, ids=name)
@pytest.mark.parametrize(("batch", "seq_k"), [(1, 65536), (16, 5000)])
@pytest.mark.parametrize(("heads", "kv_heads"), [(32, 8), (16, 16)])
@pytest.mark.parametrize("page_size", [16, 128])
def test_decoding(
    half: torch.dtype,
    batch: int,
    seq_k: int,
    heads: int,
    kv_heads: int,
    page_size: int,
    device: str,
) -> None:
    tensors = qkv((batch, heads), (batch, kv_heads), 1, seq_k, 128, half, device)
    lengths = [max(0, seq_k - 97 * i) for i in range(batch)]
    options = {"page_size": page_size, "splits": None, "block_n": None}
    check(*tensors, lengths, **options)


def test_a_table_wider_than_any_sequence(device: str) -> None:
    q, k, v = qkv((1, 1), (1, 1), 1, 100, 16, torch.float16, device)
    k, v, table, seq_lens = paged(k, v, [100], 4096)
    wide = torch.nn.functional.pad(table[:, :1], (0, 2**19))
    found, expected = (
        paged_kv.attention(q, k, v, x, seq_lens, **SMALL) for x in (wide, table)
    )
    assert all(map(torch.equal, found, expected))


@pytest.mark.gpu
@pytest.mark.parametrize("splits", [1, 16])
def test_launches_wait_for_each_other(
    splits: int, device: str, poisoned: Poison
) -> None:
    # With so large a scale each output is a row of v, and another one each time.
    q, k, v = qkv((1, 8), (1, 4), 1, 8000, 128, torch.float16, device)
    cache = paged(k, v, [8000], 16)
    check_that_launches_wait(
        lambda q: paged_kv.attention(q, *cache, scale=10.0, splits=splits)[0],
        q,
        cache[0],
        poisoned,
    )
