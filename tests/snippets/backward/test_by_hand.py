"""Tests of snippets/backward/by_hand.py: the gradient of attention, in PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.backward import by_hand
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import (
    HEAD_LAYOUTS,
    INF,
    STRUCTURED,
    name,
    normal,
    qkv,
)
from tests.harness.poison import guarded
from tests.snippets.attention.reference import reference as forward_reference
from tests.snippets.attention.suite import every_dtype
from tests.snippets.backward.reference import Gradients, attention, gradients

GRADIENTS = ("dq", "dk", "dv")
LEAD = (2, 3)
# seq_q, seq_k: the same, more keys, more queries, one query.
LENGTHS = ((7, 7), (5, 12), (12, 5), (1, 9), (70, 33))
every_mask = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
every_length = pytest.mark.parametrize("lengths", LENGTHS, ids=str)


def inputs(
    seq_q: int, seq_k: int, dtype: torch.dtype, device: str, *, head_dim: int = 8
) -> list[torch.Tensor]:
    """q, k, v, do of normal values, and dlse."""
    q, k, v = qkv(LEAD, LEAD, seq_q, seq_k, head_dim, dtype, device)
    do = normal(q.shape, dtype, device, seed=3)
    wide = torch.promote_types(dtype, torch.float32)
    return [q, k, v, do, normal(q.shape[:-1], wide, device, seed=4)]


def baseline(*given: torch.Tensor | None, **asked: Any) -> Gradients:
    """The gradients as PyTorch's autograd computes them, in the dtype of q."""
    q, k, v, do, dlse = [*given, None][:5]
    return gradients(lambda *x: attention(*x, **asked), q, k, v, do, dlse)


def reference(*given: torch.Tensor | None, **asked: Any) -> Gradients:
    """The same in float64."""
    exact = (None if x is None else x.double() for x in given)
    return baseline(*exact, **asked)


def check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    dlse: torch.Tensor | None = None,
    **asked: Any,
) -> tuple[torch.Tensor, ...]:
    """Hold the gradients against the rule; returns them."""
    o, lse = by_hand.attention(q, k, v, **asked)
    found = by_hand.attention_backward(q, k, v, o, lse, do, dlse=dlse, **asked)
    expected = reference(q, k, v, do, dlse, **asked)
    own = baseline(q, k, v, do, dlse, **asked)
    check_accuracy(
        *(dict(zip(GRADIENTS, x, strict=True)) for x in (found, expected, own))
    )
    return found


@every_mask
@every_length
def test_every_length(lengths: tuple[int, int], causal: bool, device: str) -> None:
    q, k, v, do, dlse = inputs(*lengths, torch.float64, device)
    check(q, k, v, do, causal=causal)
    check(q, k, v, do, dlse, causal=causal)


@pytest.mark.parametrize("seq_q", [1, 9])
def test_one_key_has_weight_1(seq_q: int, device: str) -> None:
    # Whatever the score: so dq and dk are 0, but for what cancels to a rounding error.
    q, k, v, do, dlse = inputs(seq_q, 1, torch.float64, device)
    o, lse = by_hand.attention(q, k, v, scale=0.5)
    dq, dk, dv = by_hand.attention_backward(q, k, v, o, lse, do, scale=0.5)
    assert dq.abs().max() < 1e-13
    assert dk.abs().max() < 1e-13
    torch.testing.assert_close(dv, do.sum(dim=-2, keepdim=True), rtol=0, atol=1e-13)
    # And lse is that score.
    dq, dk, _ = by_hand.attention_backward(q, k, v, o, lse, do, dlse=dlse, scale=0.5)
    dlse = dlse[..., None] * 0.5
    torch.testing.assert_close(dq, dlse * k, rtol=0, atol=1e-13)
    torch.testing.assert_close(dk, dlse.mT @ q, rtol=0, atol=1e-13)


@every_mask
@every_dtype
def test_every_dtype(dtype: torch.dtype, causal: bool, device: str) -> None:
    q, k, v, do, dlse = inputs(19, 37, dtype, device, head_dim=24)
    check(q, k, v, do, causal=causal)
    found = check(q, k, v, do, dlse, causal=causal)
    assert [x.dtype for x in found] == 3 * [dtype]


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, -0.3])
def test_every_scale(scale: float, device: str) -> None:
    check(*inputs(9, 13, torch.float64, device), scale=scale)


@pytest.mark.parametrize("head_dim", [1, 16, 40, 256])
def test_every_head_dim(head_dim: int, device: str) -> None:
    check(*inputs(9, 13, torch.float64, device, head_dim=head_dim))


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)], ids=str)
def test_any_number_of_dimensions(lead: tuple[int, ...], device: str) -> None:
    q, k, v = qkv(lead, lead, 5, 6, 8, torch.float64, device)
    do = normal(q.shape, torch.float64, device, seed=3)
    found = check(q, k, v, do, normal(q.shape[:-1], torch.float64, device, seed=4))
    assert [x.shape for x in found] == [x.shape for x in (q, k, v)]


@pytest.mark.parametrize("layout", HEAD_LAYOUTS)
def test_every_layout(layout: str, device: str) -> None:
    views = list(HEAD_LAYOUTS.values())
    first = list(HEAD_LAYOUTS).index(layout)
    *four, dlse = inputs(7, 9, torch.float64, device)
    q, k, v, do = (
        guarded(views[(first + step) % len(views)](x))
        for step, x in zip((1, 2, 4, 0), four, strict=True)
    )
    check(q, k, v, do, dlse)


@every_mask
@pytest.mark.parametrize("kind", STRUCTURED)
def test_structured_inputs(kind: str, causal: bool, device: str) -> None:
    q, k, v, do, dlse = inputs(9, 13, torch.float16, device, head_dim=16)
    q, k, v, do = (STRUCTURED[kind](x) for x in (q, k, v, do))
    check(q / 10, k, v, do, dlse, causal=causal)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=name)
def test_large_scores(dtype: torch.dtype, device: str) -> None:
    q, k, v, do, dlse = inputs(9, 13, dtype, device, head_dim=16)
    for x in check(q * 50, k * 40, v, do, dlse, scale=1.0):
        assert x.isfinite().all()


def test_large_scores_are_as_coarse_as_their_logsumexp(device: str) -> None:
    # Near 10^4, numbers in float32 are 2^-10 apart: lse, and with it a row of weights.
    q, k, v, do, dlse = inputs(9, 13, torch.float32, device, head_dim=16)
    q[..., 0], k[..., 0] = 100, 100
    o, lse = by_hand.attention(q, k, v, scale=1.0)
    sums = by_hand.weights(by_hand.scores(q, k, False, 1.0), lse).sum(dim=-1)
    assert 2**-16 < (sums - 1).abs().max() <= 2**-10
    found = by_hand.attention_backward(q, k, v, o, lse, do, dlse=dlse, scale=1.0)
    expected = reference(q, k, v, do, dlse, scale=1.0)
    for x, y in zip(found, expected, strict=True):
        assert (x - y).abs().max() <= 2**-6 * y.abs().max()


@pytest.mark.parametrize("lengths", [(9, 4), (6, 1), (5, 0)], ids=str)
def test_rows_that_see_nothing(lengths: tuple[int, int], device: str) -> None:
    q, k, v, do, dlse = inputs(*lengths, torch.float64, device)
    blind = lengths[0] - lengths[1]
    o, lse = by_hand.attention(q, k, v, causal=True)
    assert (o[..., :blind, :] == 0).all()
    assert (lse[..., :blind] == -INF).all()
    # Whatever arrives at them reaches nobody.
    found = []
    for value in (0.0, 1e300):
        do[..., :blind, :], dlse[..., :blind] = value, value
        found.append(
            by_hand.attention_backward(q, k, v, o, lse, do, dlse=dlse, causal=True)
        )
    for x, y in zip(*found, strict=True):
        assert torch.equal(x, y)
        assert x.isfinite().all()
    assert (found[0][0][..., :blind, :] == 0).all()


@pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
def test_empty(seq_q: int, seq_k: int, device: str) -> None:
    q, k, v, do, dlse = inputs(seq_q, seq_k, torch.float64, device)
    o, lse = by_hand.attention(q, k, v)
    found = by_hand.attention_backward(q, k, v, o, lse, do, dlse=dlse)
    for x, like in zip(found, (q, k, v), strict=True):
        assert torch.equal(x, torch.zeros_like(like))


def test_nothing_is_written_to(device: str) -> None:
    q, k, v, do, dlse = inputs(5, 6, torch.float64, device)
    o, lse = by_hand.attention(q, k, v)
    given = (q, k, v, o, lse, do, dlse)
    before = [x.clone() for x in given]
    by_hand.attention_backward(*given[:-1], dlse=dlse)
    for x, copy in zip(given, before, strict=True):
        assert torch.equal(x, copy)


@every_mask
@every_dtype
def test_forward(dtype: torch.dtype, causal: bool, device: str) -> None:
    q, k, v, *_ = inputs(19, 37, dtype, device, head_dim=24)
    o, lse = by_hand.attention(q, k, v, causal=causal, scale=0.3)
    assert (o.dtype, lse.dtype) == (dtype, torch.promote_types(dtype, torch.float32))
    expected, expected_lse = forward_reference(q, k, v, causal=causal, scale=0.3)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(o.double(), expected, rtol=0, atol=16 * eps)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-6, atol=1e-6)


@given(
    seq_q=st.integers(6, 12),
    seq_k=st.integers(6, 12),
    head_dim=st.integers(4, 9),
    causal=st.booleans(),
    through_lse=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_any_input(
    device: str,
    seq_q: int,
    seq_k: int,
    head_dim: int,
    causal: bool,
    through_lse: bool,
    seed: int,
) -> None:
    q, k, v = qkv((2,), (2,), seq_q, seq_k, head_dim, torch.float64, device, seed=seed)
    do = normal(q.shape, q.dtype, device, seed=seed + 1)
    dlse = normal(q.shape[:-1], q.dtype, device, seed=seed + 2)
    _, lse = by_hand.attention(q, k, v, causal=causal)
    check(q, k, v, do, dlse * lse.isfinite() if through_lse else None, causal=causal)


# What the page derives.


def test_two_row_sums_are_one_number(device: str) -> None:
    q, k, v, do, _ = inputs(9, 13, torch.float64, device)
    o, lse = by_hand.attention(q, k, v)
    p = by_hand.weights(by_hand.scores(q, k, False, 8**-0.5), lse)
    found = ((do @ v.mT) * p).sum(dim=-1)
    torch.testing.assert_close(found, (do * o).sum(dim=-1), rtol=0, atol=1e-14)


def test_the_rows_of_ds_sum_to_dlse(device: str) -> None:
    # With k = 1 in one component, that component of dq is the sum of a row of ds.
    q, k, v, do, dlse = inputs(9, 13, torch.float64, device)
    k[..., 0] = 1
    o, lse = by_hand.attention(q, k, v, scale=1.0)
    for arriving in (None, dlse):
        dq, *_ = by_hand.attention_backward(
            q, k, v, o, lse, do, dlse=arriving, scale=1.0
        )
        expected = torch.zeros_like(dlse) if arriving is None else arriving
        torch.testing.assert_close(dq[..., 0], expected, rtol=0, atol=1e-13)


def test_the_example_for_a_pencil(device: str) -> None:
    log3 = math.log(3)
    q, k, v, do, dq, dk, dv = (
        torch.tensor(x, dtype=torch.float64, device=device)[:, None]
        for x in (
            [1.0], [0.0, log3], [4.0, 0.0], [1.0],
            [-0.75 * log3], [0.75, -0.75], [0.25, 0.75],
        )
    )  # fmt: skip
    o, lse = by_hand.attention(q, k, v)
    assert o.item() == pytest.approx(1)
    assert lse.item() == pytest.approx(math.log(4))
    found = by_hand.attention_backward(q, k, v, o, lse, do)
    for x, expected in zip(found, (dq, dk, dv), strict=True):
        torch.testing.assert_close(x, expected, rtol=0, atol=1e-15)


# The autograd function.


@every_mask
@pytest.mark.parametrize("lengths", [(3, 3), (2, 4)], ids=str)
def test_gradcheck(lengths: tuple[int, int], causal: bool, device: str) -> None:
    q, k, v = qkv((1, 2), (1, 2), *lengths, 3, torch.float64, device)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    for pick in (slice(None), slice(1), slice(1, None)):  # both outputs, o, lse
        assert torch.autograd.gradcheck(
            lambda *x, pick=pick: by_hand.Attention.apply(*x, causal, 0.7)[pick], leaves
        )


def test_gradcheck_of_rows_that_see_nothing(device: str) -> None:
    q, k, v = qkv((2,), (2,), 4, 2, 3, torch.float64, device)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    assert torch.autograd.gradcheck(
        lambda *x: by_hand.Attention.apply(*x, True)[0], leaves
    )


def test_the_gradient_of_a_sum_has_strides_of_0(device: str) -> None:
    q, k, v, *_ = inputs(5, 6, torch.float64, device)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    by_hand.Attention.apply(*leaves)[0].sum().backward()
    expected = reference(q, k, v, torch.ones_like(q))
    for x, grad in zip(leaves, expected, strict=True):
        torch.testing.assert_close(x.grad, grad, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_the_gradient_is_refused(device: str) -> None:
    q, k, v, *_ = inputs(3, 3, torch.float64, device)
    q.requires_grad_()
    o, _ = by_hand.Attention.apply(q, k, v)
    (dq,) = torch.autograd.grad((o * o).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dq.sum().backward()


# What is kept.


@every_dtype
@pytest.mark.parametrize("sizes", [(64, 64, 16), (32, 96, 8)], ids=str)
def test_what_is_kept(
    sizes: tuple[int, int, int], dtype: torch.dtype, device: str
) -> None:
    seq_q, seq_k, head_dim = sizes
    q, k, v = qkv((), (), *sizes, dtype, device)
    b, wide = dtype.itemsize, torch.promote_types(dtype, torch.float32).itemsize
    tensors = b * head_dim * (seq_q + 2 * seq_k)
    assert by_hand.kept(by_hand.naive, q, k, v) == tensors + b * seq_q * seq_k
    # A softmax in float32 keeps its result, and the product its rounded copy.
    weights = seq_q * seq_k * (4 if b == 4 else 4 + b)
    assert by_hand.kept(by_hand.naive_float32, q, k, v) == tensors + weights
    o_and_lse = b * head_dim * seq_q + wide * seq_q
    assert by_hand.kept(by_hand.Attention.apply, q, k, v) == tensors + o_and_lse


def test_what_is_kept_of_views_is_counted_once(device: str) -> None:
    x = normal((10,), torch.float64, device)
    assert by_hand.kept(lambda x: (x * x, x[:5] * x[5:]), x) == 80
    assert by_hand.kept(lambda x: x + x, x) == 0


@pytest.mark.parametrize("form", [by_hand.naive, by_hand.naive_float32])
def test_naive_is_attention(form: Callable[..., torch.Tensor], device: str) -> None:
    q, k, v, *_ = inputs(9, 13, torch.float32, device)
    o = form(q, k, v)
    assert o.dtype == q.dtype
    expected, _ = forward_reference(q, k, v)
    torch.testing.assert_close(o.double(), expected, rtol=1e-5, atol=1e-5)
