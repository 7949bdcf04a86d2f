"""Tests of snippets/companions/key_ranges.py."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from snippets.companions import key_ranges
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import HEAD_LAYOUTS, INF, NAN, normal, qkv
from tests.harness.poison import Poison, guarded
from tests.snippets.attention.reference import for_heads_of
from tests.snippets.backward import test_autograd
from tests.snippets.backward.reference import Gradients
from tests.snippets.backward.test_autograd import BLOCK, LAYOUTS

OPERATORS = torch.ops.key_ranges.attention, torch.ops.key_ranges.attention_backward
Rows = tuple[torch.Tensor, torch.Tensor]


def causal_ranges(
    q: torch.Tensor, k: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """All keys, or those up to a query's own, aligned bottom right."""
    rows, keys = q.shape[-2], k.shape[-2]
    first = torch.zeros(rows, dtype=torch.int32, device=q.device)
    own = torch.arange(rows, dtype=torch.int32, device=q.device) + 1 + keys - rows
    end = own.clamp(0, keys) if causal else torch.full_like(first, keys)
    return torch.stack((first, end), dim=-1).expand(len(q), -1, -1)


# What masks of models are made of: (rows, keys) -> (first, end).
def window(rows: torch.Tensor, keys: int) -> Rows:
    own = rows + keys - len(rows)
    return (own - 6).clamp(min=0), (own + 1).clamp(min=0)


def documents(rows: torch.Tensor, keys: int) -> Rows:
    return torch.where(rows < 19, 0, torch.where(rows < 22, 19, 22)), rows + 1


def left_padding(rows: torch.Tensor, keys: int) -> Rows:
    return torch.where(rows < 17, 0, 17), torch.where(rows < 17, 0, rows + 1)


def right_padding(rows: torch.Tensor, keys: int) -> Rows:
    return torch.zeros_like(rows), (rows + 1).clamp(max=keys - 18)


def prefix(rows: torch.Tensor, keys: int) -> Rows:
    return torch.zeros_like(rows), (rows + 1).clamp(min=21)


def chunks(rows: torch.Tensor, keys: int) -> Rows:
    return rows // 9 * 9, rows // 9 * 9 + 9


def falling(rows: torch.Tensor, keys: int) -> Rows:
    """No order that a model has: the first queries see the last keys."""
    return keys - 5 - rows, keys - rows


def scattered(rows: torch.Tensor, keys: int) -> Rows:
    """Two keys each, far apart."""
    first = 7 * rows % (keys - 1)
    return first, first + 2


def beyond(rows: torch.Tensor, keys: int) -> Rows:
    """Ends that lie outside, and ranges the wrong way round."""
    lowest = torch.iinfo(torch.int32).min
    return (
        torch.where(rows % 3 == 0, lowest, rows + 3 * (rows % 3 == 1)),
        torch.where(rows % 3 == 2, -lowest - 1, rows + 1),
    )


MASKS: dict[str, Callable[[torch.Tensor, int], Rows]] = {
    each.__name__.replace("_", " "): each
    for each in (
        window,
        documents,
        left_padding,
        right_padding,
        prefix,
        chunks,
        falling,
        scattered,
        beyond,
    )
}


def made(mask: str, seq_q: int, seq_k: int, device: str) -> torch.Tensor:
    """Ranges of a batch of two; the second one is causal."""
    rows = torch.arange(seq_q, device=device, dtype=torch.int32)
    ranges = torch.stack([x.int() for x in MASKS[mask](rows, seq_k)], dim=-1)
    q, k = torch.empty(1, seq_q, 1), torch.empty(1, seq_k, 1)
    return torch.cat((ranges[None], causal_ranges(q, k).to(device)))


def exactly(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    ranges: torch.Tensor,
    scale: float = 0.25,
    softcap: float | None = None,
) -> torch.Tensor:
    """The formula, in the dtype of q; a row that sees nothing is 0."""
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = q @ k.mT * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    keys = torch.arange(k.shape[2], device=q.device)
    seen = (keys >= ranges[..., :1]) & (keys < ranges[..., 1:])
    seen, some = seen[:, None], seen.any(dim=-1)[:, None, :, None]
    s = s.where(seen, s.new_tensor(-INF).where(some, 0.0))
    return torch.softmax(s, dim=-1) * some @ v


def results(
    function: Callable[..., torch.Tensor],
    given: list[torch.Tensor],
    *args: Any,
    **asked: Any,
) -> dict[str, torch.Tensor]:
    """o, dq, dk and dv of a function of (q, k, v, ...), for a gradient of o."""
    q, k, v, do = given
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        o = function(*leaves, *args, **asked)
        found = torch.autograd.grad(o, leaves, do.to(o.dtype))
    return dict(zip(("o", "dq", "dk", "dv"), (o, *found), strict=True))


def inputs(
    seq_q: int, seq_k: int, dtype: torch.dtype, device: str
) -> list[torch.Tensor]:
    """q, k, v and do, of two sequences; two heads share a head of keys.

    In float32, a head_dim of 16 has too few roundings for their largest to be steady.
    """
    head_dim = 64 if dtype is torch.float32 else 16
    q, k, v = qkv((2, 4), (2, 2), seq_q, seq_k, head_dim, dtype, device)
    return [q, k, v, normal(q.shape, dtype, device, seed=5)]


def check(
    given: list[torch.Tensor], ranges: torch.Tensor, block: int = 16, **asked: Any
) -> dict[str, torch.Tensor]:
    """Hold o and the gradients against the rule; returns them."""
    ours = [guarded(x) for x in given]
    found = results(key_ranges.attention, ours, guarded(ranges), block=block, **asked)
    exact = results(exactly, [x.double() for x in given], ranges, **asked)
    check_accuracy(found, exact, results(exactly, given, ranges, **asked))
    return found


@pytest.fixture
def plain(poisoned: Poison) -> Iterator[None]:
    """Fresh tensors are as torch makes them: a fake one has no memory to poison."""
    with poisoned.lifted():
        yield


# What is read.


def test_keys_that_nobody_sees_are_not_read(device: str) -> None:
    given = inputs(40, 80, torch.float16, device)
    rows = torch.arange(40, device=device, dtype=torch.int32)
    ranges = torch.stack((rows + 16, rows + 33), dim=-1)
    ranges[3], ranges[7] = 0, 79 - ranges[7]  # see nothing
    ranges = ranges.expand(2, -1, -1)
    expected = results(key_ranges.attention, given, ranges, **BLOCK)
    # Of the tiles of 16 queries, the first one sees keys 16 to 47.
    given[2][:, :, :16], given[2][:, :, 48:] = NAN, NAN
    found = results(key_ranges.attention, given, ranges, **BLOCK)
    for x in ("o", "dq"):
        assert torch.equal(found[x][:, :, :16], expected[x][:, :, :16])


def test_queries_that_see_none_of_the_keys_are_not_read(device: str) -> None:
    given = inputs(80, 40, torch.float16, device)
    rows = torch.arange(80, device=device, dtype=torch.int32)
    ranges = torch.stack((rows // 2, rows // 2 + 1), dim=-1)[None].expand(2, -1, -1)
    expected = results(key_ranges.attention, given, ranges, **BLOCK)
    # Keys 16 to 31 are seen by queries 32 to 63 alone.
    given[3][:, :, :32], given[3][:, :, 64:] = NAN, NAN
    found = results(key_ranges.attention, given, ranges, **BLOCK)
    for x in ("dk", "dv"):
        assert torch.equal(found[x][:, :, 16:32], expected[x][:, :, 16:32])


# Softcap.


@pytest.mark.parametrize("softcap", [0.3, 2.0, 50.0])
def test_softcap(softcap: float, device: str) -> None:
    given = inputs(40, 40, torch.float32, device)
    ranges = made("window", 40, 40, device)
    capped = check(given, ranges, scale=0.2, softcap=softcap)
    free = results(key_ranges.attention, given, ranges, scale=0.2, **BLOCK)
    assert (capped["o"] - free["o"]).abs().max() > (0.1 if softcap < 10 else 1e-4)


def test_large_scores_are_capped(device: str) -> None:
    q, k, v, do = inputs(20, 40, torch.float16, device)
    ranges = causal_ranges(q, k)
    found = check([q * 40, k * 40, v, do], ranges, scale=1.0, softcap=5.0)
    assert all(x.isfinite().all() for x in found.values())


# Ranges.


@pytest.mark.parametrize("mask", MASKS)
def test_every_mask(mask: str, device: str) -> None:
    ranges = made(mask, 40, 40, device)
    check(inputs(40, 40, torch.float32, device), ranges, scale=0.125)


@pytest.mark.parametrize("mask", ["window", "scattered"])
@pytest.mark.parametrize("lengths", [(1, 37), (5, 37), (37, 20)], ids=str)
def test_other_lengths(mask: str, lengths: tuple[int, int], device: str) -> None:
    # In float32 the row-dot of a row of two keys cancels more than PyTorch's own sum,
    # which is of these two alone: over few rows the rule hardly allows it.
    ranges = made(mask, *lengths, device)
    check(inputs(*lengths, torch.float16, device), ranges)


def test_more_queries_than_are_looked_at_at_once(device: str) -> None:
    rows = torch.arange(1100, device=device, dtype=torch.int32)
    first = torch.where((rows == 3) | (rows == 1090), 4, 30).int()
    ranges = torch.stack((first, first + 6), dim=-1)[None].expand(2, -1, -1)
    given = inputs(1100, 40, torch.float16, device)
    check(given, ranges, block=128, scale=0.25)


def test_a_row_that_sees_nothing_is_0(device: str) -> None:
    given = inputs(40, 40, torch.float16, device)
    found = check(given, made("left padding", 40, 40, device))
    assert (found["o"][0, :, :17] == 0).all()
    assert (found["dq"][0, :, :17] == 0).all()
    assert (found["dk"][0, :, :17] == 0).all()


def test_the_layout_of_ranges_is_free(device: str) -> None:
    given = inputs(40, 40, torch.float16, device)
    ranges = made("window", 40, 40, device)
    expected = results(key_ranges.attention, given, ranges, **BLOCK)
    spread = ranges.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    found = results(key_ranges.attention, given, guarded(spread), **BLOCK)
    assert all(torch.equal(found[x], expected[x]) for x in expected)
    same = ranges[:1, 20:21].expand(2, 40, 2)
    check(given, same)


# Autograd and torch.compile.


def test_what_is_kept(device: str) -> None:
    q, k, v, _ = (x.requires_grad_() for x in inputs(18, 37, torch.float16, device))
    ranges = causal_ranges(q, k)
    kept: list[torch.Tensor] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        o = key_ranges.attention(q, k, v, ranges, **BLOCK)
    wanted = [x.data_ptr() for x in (q, k, v, ranges, o)]
    assert [x.data_ptr() for x in kept[:5]] == wanted
    assert [x.shape for x in kept[5:]] == [q.shape[:3]]


def test_a_model_gets_its_own_layout_back(device: str) -> None:
    q, k, v, _ = inputs(18, 37, torch.float16, device)
    q = HEAD_LAYOUTS["seq before heads"](q)
    o = key_ranges.attention(q, k, v, causal_ranges(q, k), **BLOCK)
    assert o.transpose(1, 2).is_contiguous()


def test_there_is_no_second_gradient(device: str) -> None:
    given = [x.requires_grad_() for x in inputs(18, 37, torch.float16, device)[:3]]
    o = key_ranges.attention(*given, causal_ranges(*given[:2]), **BLOCK)
    found = torch.autograd.grad(o.float().square().sum(), given, create_graph=True)
    with pytest.raises(RuntimeError, match="autograd"):
        torch.autograd.grad(found[0].float().sum(), given)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fake_result_is_like_the_real_one(
    layout: str, device: str, plain: None
) -> None:
    q, k, v, do = (LAYOUTS[layout](x) for x in inputs(5, 7, torch.float16, device))
    seen = causal_ranges(q, k)[:, None].expand(-1, 4, -1, -1)
    options = 2.0, 0.3, 16
    o, lse = OPERATORS[0](q, k, v, seen, *options)
    given = (q, k, v, seen, o, lse, do, *options)
    for operator, arguments, real in (
        (OPERATORS[0], (q, k, v, seen, *options), (o, lse)),
        (OPERATORS[1], given, OPERATORS[1](*given)),
    ):
        with FakeTensorMode() as mode:
            faked = [
                mode.from_tensor(x) if isinstance(x, torch.Tensor) else x
                for x in arguments
            ]
            found = operator(*faked)
        for x, y in zip(found, real, strict=True):
            assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
            assert x.stride() == y.stride()


def test_opcheck(device: str, plain: None) -> None:
    q, k, v, _ = inputs(18, 20, torch.float16, device)
    seen = causal_ranges(q, k)[:, None].expand(-1, 4, -1, -1)
    of_all = {"rtol": 1e-3, "atol": 1e-3}
    trained = [x.requires_grad_() for x in (q, k, v)]
    passed = opcheck(OPERATORS[0], (*trained, seen, 2.0, 0.3, 16), **of_all)
    assert set(passed.values()) == {"SUCCESS"}


# The suite of the backward kernels, on causal ranges and on those of all keys.


@wraps(key_ranges.attention)
def through_autograd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
    **options: Any,
) -> Gradients:
    """The gradients as a loss finds them: o and lse are those of the snippet."""
    with torch.enable_grad():
        given = [x.detach() for x in (q, k, v)]
        for x in given:
            x.requires_grad_(x.is_floating_point())
        ranges = causal_ranges(q, k, causal)
        return torch.autograd.grad(
            key_ranges.attention(*given, ranges, **options), given, do
        )


class TestKeyRanges(test_autograd.TestAutograd):
    function = staticmethod(through_autograd)

    test_lse_has_a_gradient_too = None  # It is not returned.


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.long(),
        lambda x: x[None],
        lambda x: x[:1],
        lambda x: x[:, :4],
        lambda x: x[..., :1],
        lambda x: x.to("meta"),
    ],
    ids=["dtype", "one dimension more", "batch", "seq_q", "one end", "device"],
)
def test_refuses_ranges(change: Callable[..., Any], device: str) -> None:
    q, k, v, _ = inputs(5, 7, torch.float16, device)
    ranges = change(causal_ranges(q, k))
    with pytest.raises(ValueError, match=r"^ranges is .*; it must be torch.int32 on"):
        key_ranges.attention(q, k, v, ranges, **BLOCK)
