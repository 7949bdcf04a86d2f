"""Tests of snippets/attention/partial.py: the laws, and that no order matters."""

import functools
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.attention import partial
from tests.harness import accuracy
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import HEAD_LAYOUTS, INF, NAN, qkv
from tests.snippets.attention.reference import baseline, reference

# A key is its score and its value: with a query of 1, no scale and one component.
keys = st.lists(
    st.tuples(
        st.one_of(st.floats(-700, 700, width=32), st.just(-INF)),
        st.floats(-1, 1, width=32),
    ),
    max_size=20,
)
Keys = list[tuple[float, float]]


def tensors(part: Keys, device: str) -> tuple[torch.Tensor, ...]:
    """q [1, 1], k and v [seq, 1], in float64."""
    x = torch.tensor(part, dtype=torch.float64, device=device).view(-1, 2)
    return torch.ones_like(x[:0].new_ones(1, 1)), x[:, :1], x[:, 1:]


def triple(part: Keys, device: str) -> partial.Triple:
    """Attention to a part."""
    return partial.partial(*tensors(part, device), scale=1.0)


def assert_same(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> None:
    """Equal, but for rounding; no value of a sum is above 1."""
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


@given(part=keys)
def test_partial_is_its_definition(device: str, part: Keys) -> None:
    m_i, l_i, acc = triple(part, device)
    _, s, v = tensors(part, device)
    largest = max([-INF, *s.flatten().tolist()])
    assert m_i.item() == largest
    p = torch.exp(s - largest) if largest > -INF else torch.zeros_like(s)
    assert_same((l_i[0, 0], acc[0, 0]), (p.sum(), (p * v).sum()))


@given(part=keys)
def test_the_identity_changes_nothing(device: str, part: Keys) -> None:
    a = triple(part, device)
    identity = partial.identity(tensors(part, device)[0])
    assert_same(partial.merge(a, identity), a)
    assert_same(partial.merge(identity, a), a)


@given(a=keys, b=keys)
def test_merge_is_commutative(device: str, a: Keys, b: Keys) -> None:
    a, b = triple(a, device), triple(b, device)
    assert_same(partial.merge(a, b), partial.merge(b, a))


@given(a=keys, b=keys, c=keys)
def test_merge_is_associative(device: str, a: Keys, b: Keys, c: Keys) -> None:
    a, b, c = (triple(part, device) for part in (a, b, c))
    merge = partial.merge
    assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))


@given(a=keys, b=keys)
def test_merging_two_parts_is_attention_to_both(device: str, a: Keys, b: Keys) -> None:
    both = triple(a + b, device)
    assert_same(partial.merge(triple(a, device), triple(b, device)), both)


@given(data=st.data(), row=keys)
def test_any_split_in_any_order(device: str, data: st.DataObject, row: Keys) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(row)), max_size=5)))
    parts = [row[i:j] for i, j in itertools.pairwise([0, *cuts, len(row)])]
    parts = [triple(part, device) for part in data.draw(st.permutations(parts))]
    divided = [partial.finish(part) for part in parts]
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [partial.merge(*parts[at : at + 2])]
        divided[at : at + 2] = [partial.merge_normalised(*divided[at : at + 2])]
    assert_same(parts[0], triple(row, device))
    expected = reference(*tensors(row, device), scale=1.0)
    assert_same(partial.finish(parts[0]), expected)
    # A logarithm of 700 is rounded to 1e-13, which its exponential shows.
    for x, y in zip(divided[0], expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-11, atol=1e-11)


def in_parts(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cuts: list[int]
) -> list[partial.Triple]:
    """Attention to each part of the keys."""
    bounds = itertools.pairwise([0, *cuts, k.shape[-2]])
    return [partial.partial(q, k[..., i:j, :], v[..., i:j, :]) for i, j in bounds]


def check(
    actual: tuple[torch.Tensor, torch.Tensor],
    inputs: tuple[torch.Tensor, ...],
) -> None:
    """Hold o and lse against the rule."""
    expected, own = reference(*inputs), baseline(*inputs)
    check_accuracy(actual[0], expected[0], own[0])
    accuracy.compare(actual[1], expected[1], own[1].to(actual[1].dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cuts", [[], [7], [7, 7, 90], [1, 2, 3, 4], [64, 128]])
def test_attention_in_parts(cuts: list[int], dtype: torch.dtype, device: str) -> None:
    inputs = qkv((2, 3), (2, 3), 5, 150, 16, dtype, device)
    parts = in_parts(*inputs, cuts)
    check(partial.finish(functools.reduce(partial.merge, parts)), inputs)
    divided = [partial.finish(part) for part in parts]
    averaged = functools.reduce(partial.merge_normalised, divided)
    check(averaged, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_dtype(dtype: torch.dtype, device: str) -> None:
    # All arithmetic is in the dtype, a few roundings for each part.
    inputs = qkv((2,), (2,), 5, 40, 16, dtype, device)
    parts = in_parts(*inputs, [10, 20])
    o, lse = partial.finish(functools.reduce(partial.merge, parts))
    assert o.dtype == lse.dtype == dtype
    expected_o, expected_lse = reference(*inputs)
    allowed = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(o.double(), expected_o, rtol=0, atol=allowed)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=allowed, atol=allowed)


@pytest.mark.parametrize("layout", HEAD_LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    inputs = qkv((2, 4), (2, 4), 5, 6, 8, torch.float64, device)
    inputs = tuple(HEAD_LAYOUTS[layout](x) for x in inputs)
    check(partial.finish(partial.partial(*inputs)), inputs)


@pytest.mark.parametrize("scale", [0.0, 1.0, -0.3])
def test_scales(scale: float, device: str) -> None:
    inputs = qkv((), (), 5, 6, 8, torch.float64, device)
    finished = partial.finish(partial.partial(*inputs, scale))
    assert_same(finished, reference(*inputs, scale=scale))


def test_large_scores_keep_the_weights_normalised(device: str) -> None:
    # The logsumexp of each part is near 1e4, in float32 rounded by up to 5e-4.
    q, k, v = qkv((), (), 3, 40, 16, torch.float32, device)
    q[:, 0], k[:, 0] = 200, 200
    parts = [partial.finish(part) for part in in_parts(q, k, torch.ones_like(v), [20])]
    o, lse = partial.merge_normalised(*parts)
    torch.testing.assert_close(o, torch.ones_like(o), rtol=1e-6, atol=0)
    assert (lse > 9000).all()


def test_nothing_but_scores_of_minus_inf(device: str) -> None:
    q, k, v = qkv((), (), 3, 4, 8, torch.float64, device)
    q, k = q.abs() + 1, k.clone()
    k[:2] = -INF
    some, none = partial.partial(q, k, v), partial.partial(q, k - INF, v)
    nothing = partial.finish(none)
    assert (nothing[0] == 0).all()
    assert (nothing[1] == -INF).all()
    assert_same(partial.finish(partial.merge(none, none)), nothing)
    assert_same(partial.merge_normalised(nothing, nothing), nothing)
    assert_same(partial.merge(none, some), some)
    merged = partial.merge_normalised(nothing, partial.finish(some))
    assert_same(merged, partial.finish(some))


def test_nan_spreads_through_a_merge(device: str) -> None:
    q, k, v = qkv((), (), 3, 4, 8, torch.float64, device)
    bad, good = partial.partial(q * NAN, k, v), partial.partial(q, k, v)
    for pair in ((bad, good), (good, bad)):
        merged = partial.finish(partial.merge(*pair))
        averaged = partial.merge_normalised(*map(partial.finish, pair))
        for x in (*merged, *averaged):
            assert x.isnan().all()


@pytest.mark.parametrize(
    ("lead", "seq_q", "seq_k"), [((), 0, 3), ((2,), 3, 0), ((0, 2), 3, 4)]
)
def test_empty(lead: tuple[int, ...], seq_q: int, seq_k: int, device: str) -> None:
    q, k, v = qkv(lead, lead, seq_q, seq_k, 8, torch.float32, device)
    m_i, l_i, acc = partial.partial(q, k, v)
    assert m_i.shape == l_i.shape == (*lead, seq_q, 1)
    assert acc.shape == q.shape
    o, lse = partial.finish((m_i, l_i, acc))
    assert (o.shape, lse.shape) == (q.shape, q.shape[:-1])
    assert (o == 0).all()
    assert (lse == -INF).all()


def test_refuses(device: str) -> None:
    q, k, v = qkv((), (), 3, 4, 8, torch.float32, device)
    refused = {
        "q has head_dim 0; it must be at least 1": (q[:, :0], k[:, :0], v),
        "q is torch.float16 with 2 dimensions": tuple(x.half() for x in (q, k, v)),
        "q is torch.float32 with 1 dimensions": (q[0], k, v),
        r"k is torch.float32 of shape \[4, 7\]; .*\[3, 8\]": (q, k[:, :7], v),
        r"k is torch.float32 of shape \[1, 4, 8\]; .*\[3, 8\]": (q, k[None], v[None]),
        r"k is torch.float32 of shape \[8\]; .*\[3, 8\]": (q, k[0], v),
        r"k is torch.float64 of shape .*float32": (q, k.double(), v),
        r"v is torch.float32 of shape \[3, 8\]; .*\[4, 8\]": (q, k, v[:3]),
        "v is torch.float64 of shape .*float32": (q, k, v.double()),
    }
    for said, inputs in refused.items():
        with pytest.raises(ValueError, match=f"^{said}"):
            partial.partial(*inputs)
