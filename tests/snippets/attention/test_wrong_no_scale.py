"""Tests of snippets/attention/wrong_no_scale.py: a softmax that picks one key."""

import pytest
import torch

from snippets.attention import wrong_no_scale
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import baseline, reference


def inputs(head_dim: int, device: str) -> tuple[torch.Tensor, ...]:
    """q, k and v of two heads, 200 rows each."""
    return qkv((1, 2), (1, 2), 200, 200, head_dim, torch.float32, device)


@pytest.mark.parametrize(("head_dim", "least"), [(64, 0.7), (256, 0.85)])
def test_softmax_saturates(head_dim: int, least: float, device: str) -> None:
    q, k, _ = inputs(head_dim, device)
    largest = wrong_no_scale.weights(q, k).amax(dim=-1).mean()
    scaled = wrong_no_scale.weights(q * head_dim**-0.5, k).amax(dim=-1).mean()
    assert largest > least
    assert scaled < 0.1


@pytest.mark.parametrize("head_dim", [16, 64, 256])
def test_it_is_not_attention(head_dim: int, device: str) -> None:
    q, k, v = inputs(head_dim, device)
    o, _ = reference(q, k, v)
    error = (wrong_no_scale.attention(q, k, v) - o).abs().max()
    assert error > 0.5 * o.abs().max()


@pytest.mark.parametrize("head_dim", [1, 64])
def test_it_is_attention_with_a_scale_of_1(head_dim: int, device: str) -> None:
    # So nothing else is wrong with it: with head_dim 1 it is even right.
    q, k, v = inputs(head_dim, device)
    (o, _), (own, _) = (f(q, k, v, scale=1.0) for f in (reference, baseline))
    check_accuracy(wrong_no_scale.attention(q, k, v), o, own)
