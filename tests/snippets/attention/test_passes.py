"""Tests of snippets/attention/passes.py: three, two and one pass are the same."""

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from snippets.attention import passes
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import INF, LAYOUTS, NAN, QKV, normal
from tests.snippets.attention.reference import reference

FUNCTIONS = (passes.three_pass, passes.two_pass, passes.one_pass)
every_function = pytest.mark.parametrize("function", FUNCTIONS)


def inputs(seq: int, dtype: torch.dtype, device: str, head_dim: int = 8) -> QKV:
    """One query, seq keys and values."""
    q, k, v = normal((3, seq + 1, head_dim), dtype, device)
    return q[0], k[:seq], v[:seq]


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[head_dim], float64."""
    return reference(q[None], k, v)[0][0]


def check_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """All three right, and equal to one another, to rounding."""
    right = expected(q, k, v)
    results = [function(q, k, v) for function in FUNCTIONS]
    # Each key may add a rounding of the score, of the weight and of the sum.
    allowed = 4 * (len(k) + 1) * torch.finfo(q.dtype).eps
    for o in results:
        assert o.dtype == q.dtype
        torch.testing.assert_close(
            o.double(), right, rtol=allowed, atol=allowed, equal_nan=True
        )
    for one, other in itertools.pairwise(results):
        torch.testing.assert_close(
            one, other, rtol=allowed, atol=allowed, equal_nan=True
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seq", [0, 1, 2, 3, 40])
def test_all_three_are_attention(seq: int, dtype: torch.dtype, device: str) -> None:
    check_all(*inputs(seq, dtype, device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fewer_passes_cost_no_accuracy(dtype: torch.dtype, device: str) -> None:
    q, k, v = inputs(300, dtype, device, head_dim=64)
    baseline = passes.three_pass(q, k, v)
    for function in FUNCTIONS:
        check_accuracy(function(q, k, v), expected(q, k, v), baseline)


@pytest.mark.parametrize(
    "where",
    [slice(3), slice(3, None), slice(None, None, 2), slice(-1), slice(None)],
    ids=["first", "last", "every other", "all but the last", "all"],
)
def test_scores_of_minus_inf(where: slice, device: str) -> None:
    q, k, v = inputs(9, torch.float64, device)
    q[0] = 1
    k[where, 0] = -INF
    check_all(q, k, v)


@every_function
@pytest.mark.parametrize("seq", [0, 3])
def test_a_query_that_sees_nothing_gets_0(
    seq: int, function: Callable, device: str
) -> None:
    q, k, v = inputs(seq, torch.float32, device)
    assert torch.equal(function(q.abs() + 1, k - INF, v), torch.zeros_like(q))


@pytest.mark.parametrize("argument", [0, 1, 2])
def test_nan(argument: int, device: str) -> None:
    tensors = inputs(5, torch.float64, device)
    tensors[argument][-1] = NAN
    check_all(*tensors)


@every_function
@pytest.mark.parametrize("shift", [-2000, 2000])
def test_a_shift_of_the_scores_changes_nothing(
    shift: int, function: Callable, device: str
) -> None:
    # Integers and a scale of 1/4: the scores are exact, however large.
    q, k, v = inputs(9, torch.float32, device, head_dim=16)
    q, k = (q * 2).round(), (k * 2).round()
    q[0], k[:, 0] = 1, 0
    o = function(q, k, v)
    k[:, 0] = shift
    assert torch.equal(function(q, k, v), o)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    q, k, v = inputs(9, torch.float64, device)
    check_all(q, LAYOUTS[layout](k), LAYOUTS[layout](v))


@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.floats(-700, 700, width=32), st.just(-INF)),
            st.floats(-1, 1, width=32),
        ),
        max_size=12,
    )
)
@example(rows=[(700.0, 1.0), (-700.0, 0.0)])
def test_any_scores_and_values(device: str, rows: list[tuple[float, float]]) -> None:
    # With a query of 1 and one component, the keys are the scores.
    k, v = torch.tensor(rows, dtype=torch.float64, device=device).view(-1, 2).T
    check_all(torch.ones_like(k[:1] if rows else k.new_ones(1)), k[:, None], v[:, None])


def test_refuses(device: str) -> None:
    q, k, v = inputs(3, torch.float32, device)
    refused = {
        r"q is torch.float32 of shape \[1, 8\]": (q[None], k, v),
        r"q is torch.int64 of shape \[8\]": (q.long(), k, v),
        r"q is torch.float16 of shape \[8\]": tuple(x.half() for x in (q, k, v)),
        r"q is torch.float32 of shape \[0\]": (q[:0], k[:, :0], v[:, :0]),
        r"k is torch.float32 of shape \[8\].*\[seq, 8\]": (q, k[0], v),
        r"k is torch.float32 of shape \[3, 7\].*\[seq, 8\]": (q, k[:, :7], v),
        r"k is torch.float64 of shape .*float32": (q, k.double(), v),
        r"v is torch.float32 of shape \[2, 8\].*\[3, 8\]": (q, k, v[:2]),
        r"v is torch.float64 of shape .*float32": (q, k, v.double()),
    }
    for said, tensors in refused.items():
        for function in FUNCTIONS:
            with pytest.raises(ValueError, match=f"^{said}"):
                function(*tensors)
