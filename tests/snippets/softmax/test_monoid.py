"""Tests of snippets/softmax/monoid.py: the laws, and that the order does not matter."""

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.softmax import monoid
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import SPECIALS, normal
from tests.snippets.softmax.suite import baseline, every_dtype, reference

INF = float("inf")
values = st.one_of(st.floats(-700, 700, width=32), st.just(-INF))
rows = st.lists(values, max_size=40)
orders = pytest.mark.parametrize("order", [monoid.tree, monoid.left_to_right])


def pair_of(row: list[float], device: str) -> monoid.Pair:
    """The pair of a row, in float64, by another way than merging."""
    x = torch.tensor([*row, -INF], dtype=torch.float64, device=device)
    m_i = x.max()
    return m_i, torch.exp(x - m_i.clamp_min(-1e308)).sum()


def assert_same(a: monoid.Pair, b: monoid.Pair) -> None:
    """Both pairs equal, but for rounding in the sum."""
    assert torch.equal(a[0], b[0])
    torch.testing.assert_close(a[1], b[1], rtol=1e-12, atol=1e-300)


@given(row=rows)
def test_the_identity_changes_nothing(device: str, row: list[float]) -> None:
    pair = pair_of(row, device)
    identity = tuple(part.to(pair[0]) for part in monoid.IDENTITY)
    assert_same(monoid.merge(pair, identity), pair)
    assert_same(monoid.merge(identity, pair), pair)


@given(a=rows, b=rows)
def test_merge_is_commutative(device: str, a: list[float], b: list[float]) -> None:
    left, right = pair_of(a, device), pair_of(b, device)
    assert_same(monoid.merge(left, right), monoid.merge(right, left))


@given(a=rows, b=rows, c=rows)
def test_merge_is_associative(
    device: str, a: list[float], b: list[float], c: list[float]
) -> None:
    a, b, c = (pair_of(row, device) for row in (a, b, c))
    merge = monoid.merge
    assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))


@given(a=rows, b=rows)
def test_merging_two_parts_is_the_pair_of_the_whole(
    device: str, a: list[float], b: list[float]
) -> None:
    merged = monoid.merge(pair_of(a, device), pair_of(b, device))
    assert_same(merged, pair_of(a + b, device))


@given(data=st.data(), row=rows)
def test_any_split_in_any_order(
    device: str, data: st.DataObject, row: list[float]
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(row)), max_size=5)))
    parts = [row[i:j] for i, j in itertools.pairwise([0, *cuts, len(row)])]
    pairs = [pair_of(part, device) for part in data.draw(st.permutations(parts))]
    while len(pairs) > 1:
        at = data.draw(st.integers(0, len(pairs) - 2))
        pairs[at : at + 2] = [monoid.merge(*pairs[at : at + 2])]
    assert_same(pairs[0], pair_of(row, device))


@orders
@given(row=rows)
def test_orders_give_the_pair_of_the_row(
    device: str, order: Callable, row: list[float]
) -> None:
    x = torch.tensor(row, dtype=torch.float64, device=device)
    assert_same(order(x), pair_of(row, device))


def test_from_value(device: str) -> None:
    x = torch.tensor([2.0, -INF, 0.0], dtype=torch.float64, device=device)
    m_i, l_i = monoid.from_value(x)
    assert torch.equal(m_i, x)
    assert l_i.tolist() == [1, 0, 1]
    assert l_i.dtype == x.dtype


def softmax(x: torch.Tensor, order: Callable) -> torch.Tensor:
    """Softmax from the pairs of an order, [..., cols]."""
    m_i, l_i = (part[..., None] for part in order(x))
    return torch.exp(x - m_i) / l_i


@orders
@pytest.mark.parametrize("cols", [1, 2, 3, 63, 64, 65, 200])
def test_lengths(cols: int, order: Callable, device: str) -> None:
    x = normal((3, cols), torch.float64, device)
    check_accuracy(softmax(x, order), reference(x), baseline(x))


@orders
@every_dtype
def test_every_dtype(order: Callable, dtype: torch.dtype, device: str) -> None:
    # All arithmetic is in the dtype: each of the merges may round once more.
    x = normal((3, 50), dtype, device)
    m_i, l_i = order(x)
    assert m_i.dtype == l_i.dtype == dtype
    assert m_i.shape == l_i.shape == (3,)
    assert torch.equal(m_i, x.max(dim=-1).values)
    expected = torch.exp(x.double() - m_i.double()[:, None]).sum(dim=-1)
    allowed = 50 * torch.finfo(dtype).eps
    torch.testing.assert_close(l_i.double(), expected, rtol=allowed, atol=0)


@orders
@pytest.mark.parametrize("special", SPECIALS)
def test_special_values(special: str, order: Callable, device: str) -> None:
    value, where = SPECIALS[special]
    x = normal((3, 200), torch.float64, device)
    x[1, where] = value
    check_accuracy(softmax(x, order), reference(x), baseline(x))


@orders
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (2, 3, 5)])
def test_shapes(order: Callable, shape: tuple[int, ...], device: str) -> None:
    m_i, l_i = order(torch.zeros(shape, device=device))
    assert m_i.shape == l_i.shape == shape[:-1]
    assert (l_i == shape[-1]).all()
    assert (m_i == (0 if shape[-1] else -INF)).all()
