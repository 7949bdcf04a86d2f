"""Tests of snippets/companions/wrong_moments.py: right only for small means."""

import pytest
import torch

from snippets.companions import wrong_moments
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import name, normal
from tests.snippets.companions.norms import LayerNormTests

SUITE = LayerNormTests()


def norm(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What it makes of x, what is right, and what PyTorch makes of it."""
    inputs = SUITE.with_vectors(x)
    found = wrong_moments.layer_norm(*inputs)
    return found, SUITE.reference(*inputs)[0], SUITE.own(*inputs)


def errors(mean: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest error of each row of that mean, and PyTorch's; NaN is infinite."""
    x = (normal((64, 1000), torch.float32, device) + mean).half()
    found, expected, own = norm(x)
    assert expected.isfinite().all()
    return tuple(
        (y - expected).abs().nan_to_num(nan=float("inf")).amax(dim=1)
        for y in (found, own)
    )


def test_a_mean_of_1000_leaves_one_digit(device: str) -> None:
    found, own = errors(1000, device)
    assert found.max() > 0.05
    assert own.max() < 0.01, "PyTorch has an answer"


def test_a_mean_of_4000_leaves_none(device: str) -> None:
    found, own = errors(4000, device)
    assert (found > 0.2).sum() > 32
    assert own.max() < 0.01, "PyTorch has an answer"


def test_a_variance_below_zero_has_no_root(device: str) -> None:
    found = [errors(mean, device)[0].isinf().any() for mean in (3000, 4000, 6000)]
    assert any(found)


@pytest.mark.parametrize("cols", [1, 100, 128])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=name)
def test_it_is_right_for_small_means(
    cols: int, dtype: torch.dtype, device: str
) -> None:
    check_accuracy(*norm(normal((3, cols), dtype, device)))
