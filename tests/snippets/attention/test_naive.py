"""Tests of snippets/attention/naive.py."""

import pytest
import torch

from snippets.attention import naive
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import HEAD_LAYOUTS, INF, NAN, normal, qkv
from tests.snippets.attention.reference import baseline, reference, visible
from tests.snippets.attention.suite import every_dtype

either = pytest.mark.parametrize("causal", [False, True])


def check(inputs: tuple[torch.Tensor, ...], **options: object) -> torch.Tensor:
    """Hold naive.attention against the rule; returns its output."""
    o = naive.attention(*inputs, **options)
    (expected, _), (own, _) = (f(*inputs, **options) for f in (reference, baseline))
    check_accuracy(o, expected, own)
    return o


@every_dtype
@either
@pytest.mark.parametrize("lengths", [(1, 1), (17, 40), (40, 17)], ids=str)
def test_attention(
    lengths: tuple[int, int],
    causal: bool,
    dtype: torch.dtype,
    device: str,
) -> None:
    inputs = qkv((2, 3), (2, 3), *lengths, 24, dtype, device)
    check(inputs, causal=causal)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3, 4)])
def test_any_leading_dimensions(lead: tuple[int, ...], device: str) -> None:
    inputs = qkv(lead, lead, 5, 6, 8, torch.float32, device)
    check(inputs, causal=True)


@pytest.mark.parametrize("layout", HEAD_LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    inputs = qkv((2, 4), (2, 4), 5, 6, 8, torch.float32, device)
    check(tuple(HEAD_LAYOUTS[layout](x) for x in inputs))


@pytest.mark.parametrize("scale", [0.0, 1.0, -0.3])
def test_scales(scale: float, device: str) -> None:
    inputs = qkv((), (), 5, 6, 8, torch.float32, device)
    check(inputs, scale=scale)


@pytest.mark.parametrize("causal", [False, True])
def test_scores(causal: bool, device: str) -> None:
    q, k, _ = qkv((2,), (2,), 4, 6, 8, torch.float64, device)
    s = naive.scores(q, k, causal=causal)
    for i in range(4):
        for j in range(6):
            seen = not causal or j <= i + 2
            expected = (q[:, i] * k[:, j]).sum(dim=-1) / 8**0.5 if seen else -INF
            assert torch.allclose(s[:, i, j], torch.as_tensor(expected).to(s))


@pytest.mark.parametrize(("seq_q", "seq_k"), [(5, 3), (3, 0), (0, 3)])
def test_rows_that_see_nothing_are_0(seq_q: int, seq_k: int, device: str) -> None:
    inputs = qkv((2,), (2,), seq_q, seq_k, 8, torch.float32, device)
    o = check(inputs, causal=True)
    seen = visible(seq_q, seq_k, device, causal=True).any(dim=-1)
    assert ((o == 0).all(dim=-1) == ~seen).all()


def test_scores_of_minus_inf_and_nan(device: str) -> None:
    q, k, v = qkv((), (), 6, 7, 8, torch.float32, device)
    q[:, 0] = 1
    for some in (slice(3), slice(None)):
        k[some, 0] = -INF
        check((q, k, v))
    assert (naive.attention(q, k, v) == 0).all()
    q[2, 3] = NAN
    check((q, k, v))


@pytest.mark.parametrize("head_dim", [16, 64, 256])
def test_the_variance_of_a_score_is_head_dim(head_dim: int, device: str) -> None:
    q, k = normal((2, 400, head_dim), torch.float32, device)
    assert naive.scores(q, k, scale=1).var().item() == pytest.approx(head_dim, rel=0.05)
    assert naive.scores(q, k).var().item() == pytest.approx(1, rel=0.05)
    found = naive.variance_of_scores(head_dim, 1, device)
    assert found == pytest.approx(head_dim, rel=0.05)


def test_bytes_are_those_of_the_tensors() -> None:
    sizes, dtype = (2, 3, 50, 8), torch.float16
    batch, heads, seq, _ = sizes
    q, k, v = (torch.empty(sizes, dtype=dtype, device="meta") for _ in range(3))
    s = naive.scores(q, k)
    p = torch.softmax(s, dim=-1)
    o = p @ v
    assert naive.score_bytes(batch, heads, seq, s.element_size()) == s.nbytes
    moved = sum(x.nbytes for x in (q, k, s, s, p, p, v, o))
    assert naive.traffic(*sizes, dtype.itemsize) == moved


@pytest.mark.parametrize("capacity", [0, 1, 10**6, 141 * 10**9])
@pytest.mark.parametrize("heads", [1, 32])
@pytest.mark.parametrize("head_dim", [1, 128])
def test_longest_fits_and_one_more_does_not(
    capacity: int, heads: int, head_dim: int
) -> None:
    def needed(seq: int) -> int:
        tensors = 4 * 2 * heads * seq * head_dim * 2
        return tensors + 2 * naive.score_bytes(2, heads, seq, 2)

    seq = naive.longest(capacity, 2, heads, head_dim, 2)
    assert needed(seq) <= capacity < needed(seq + 1)


REFUSED = {
    "q is .*int64 with 2 dimensions": (torch.ones(3, 4).long(), "k", "v"),
    "q is .*float32 with 1 dimensions": (torch.ones(4), "k", "v"),
    "k is .*float32 with 1 dimensions": ("q", torch.ones(4), "v"),
    r"k is .*float32 of shape \[3, 5\]; .*\[3, 4\]": ("q", torch.ones(3, 5), "v"),
    r"k is .*float32 of shape \[2, 5, 4\]; it": ("q", torch.ones(2, 5, 4), "v"),
    "k is .*float64 of shape .*; .*float32": ("q", torch.ones(3, 4).double(), "v"),
    "v is .*float32 of shape .*3, 4.*; .*5, 4": ("q", "k", torch.ones(3, 4)),
    "v is .*float64 of shape": ("q", "k", torch.ones(5, 4).double()),
    "q has head_dim 0": (torch.ones(3, 0), torch.ones(5, 0), torch.ones(5, 0)),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refuses(said: str) -> None:
    good = {"q": torch.ones(3, 4), "k": torch.ones(5, 4), "v": torch.ones(5, 4)}
    inputs = [good[x] if isinstance(x, str) else x for x in REFUSED[said]]
    with pytest.raises(ValueError, match=f"^{said}"):
        naive.attention(*inputs)
