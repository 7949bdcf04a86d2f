"""Tests of snippets/attention/paged_kv.py."""

from typing import Any

import pytest
import torch

from snippets.attention import paged_kv
from tests.harness.inputs import HEAD_DIMS, INTERPRETED, far_apart, name, qkv
from tests.harness.poison import Poison, guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.caches import (
    check_that_launches_wait,
    paged,
    with_lengths,
)
from tests.snippets.attention.reference import baseline, reference
from tests.snippets.attention.suite import Attention, resized

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
    for splits, block_n in ((1, 32), (8, 64), (200, 16), (2, 128)):
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


def test_tables_and_lengths_with_gaps(device: str) -> None:
    q, k, v = qkv((2, 2), (2, 1), 1, 40, 16, torch.float32, device)
    q, k, v, *numbers = (q, *paged(k, v, [40, 29], 8))
    gaps = (x.repeat_interleave(2, -1)[..., ::2] for x in numbers)
    found, expected = (
        paged_kv.attention(q, k, v, *which, **SMALL) for which in (gaps, numbers)
    )
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize(
    "empty", ["keys", "pages", "slots", "table", "queries", "batch"]
)
def test_empty(empty: str, device: str) -> None:
    q, k, v = qkv((2, 2), (2, 1), 3, 40, 16, torch.float32, device)
    k, v, table, seq_lens = paged(k, v, [40, 40], 8)
    if empty == "keys":
        seq_lens.zero_()
    if empty == "pages":
        k, v = k[:0], v[:0]
    if empty == "slots":
        k, v = k[:, :0], v[:, :0]
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
def test_pages_beyond_32_bits(device: str) -> None:
    # Of seven pages, five are used, so one of those that 32 bits do not count either.
    q, k, v = qkv((1, 2), (1, 1), 1, 9, 3, torch.float16, device)
    k_pages, v_pages, table, seq_lens = paged(k, v, [9], 2)
    wide = [
        far_apart(x.shape, axis, torch.float16, device, seed=0).copy_(x)
        for axis, x in ((0, k_pages), (0, v_pages))
    ]
    result = paged_kv.attention(q, *wide, table, seq_lens, **SMALL)
    compare(result, q, k, v, [9])


class TestRefusals(Suite):
    """What else is true of the function itself: what it refuses, where it launches."""

    function = staticmethod(paged_kv.attention)
    outputs = Attention.outputs
    blocks = (SMALL,)

    def example(self, device: str) -> Named:
        """Two sequences in pages of 8."""
        q, k, v = qkv((2, 4), (2, 2), 3, 40, 16, torch.float32, device)
        inputs = q, *paged(k, v, [40, 40], 8)
        names = ("q", "k", "v", "block_table", "seq_lens")
        return dict(zip(names, inputs, strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other, and of tables."""
        found = {
            **of_each("qkv", "one dimension more", lambda x: x[None], ".*; it must"),
            **of_each("qkv", "one dimension less", lambda x: x[0], ".*; it must"),
            **of_each("kv", "the device", lambda x: x.to("meta"), ".*meta; it must"),
            **of_each("kv", "the dtype", lambda x: x.half(), "is torch.float16 .*; it"),
            "the head_dim of k": Refusal(
                "k is .*15.*; it must be .*16", {"k": lambda x: x[..., :15]}
            ),
            **{
                f"{option}={bad}": Refusal(f"{option} is", options={option: bad})
                for option, bad in (("splits", 0), ("splits", 257))
            },
        }
        for dtype in (torch.float64, torch.int32):
            every = dict.fromkeys("qkv", lambda x, dtype=dtype: x.to(dtype))
            found[f"{dtype}"] = Refusal(f"q is {dtype} .*; it must be", every)
        for size in (0, 257):
            wide = dict.fromkeys("qkv", lambda x, n=size: resized(x, -1, n))
            found[f"head_dim {size}"] = Refusal(f"q has head_dim {size}; it must", wide)
        for heads in (3, 0):
            other = dict.fromkeys("kv", lambda x, n=heads: resized(x, 2, n))
            said = f"k has {heads} heads; it must divide q's 4"
            found[f"{heads} heads of k"] = Refusal(said, other)
        for axis in range(4):
            shorter = {"v": lambda x, axis=axis: x.narrow(axis, 0, x.shape[axis] - 1)}
            said = "v is .*; it must be"
            found[f"a shorter axis {axis} of v"] = Refusal(said, shorter)
        for what, change in {
            "a sequence less": lambda x: x[:1],
            "one dimension more": lambda x: x[None],
            "a last dimension more": lambda x: x[..., None],
            "64 bits": lambda x: x.long(),
            "another device": lambda x: x.to("meta"),
            "one dimension less": lambda x: x[..., 0].contiguous(),
        }.items():
            said = r"is torch.int.*; it must be torch.int32 \[2"
            found |= of_each(("block_table", "seq_lens"), what, change, said)
        return found


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
