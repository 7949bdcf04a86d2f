"""Tests of snippets/companions/wrong_tail.py: the empty lanes add to the variance."""

import pytest
import torch

from snippets.companions import wrong_tail
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import DTYPES, name, normal
from tests.snippets.companions.norms import LayerNormTests

SUITE = LayerNormTests()


def test_empty_lanes_add_the_square_of_the_mean(device: str) -> None:
    x = normal((4, 200), torch.float32, device) + 2
    ones = torch.ones(200, device=device)
    y = wrong_tail.layer_norm(x, ones, 0 * ones)
    # 56 lanes of 256 are past the end, and x - mean is -mean in each of them.
    x = x.double()
    mean, variance = x.mean(dim=1), x.var(dim=1, correction=0)
    wrong = variance + 56 / 200 * mean.square()
    expected = (x - mean[:, None]) / (wrong + 1e-5).sqrt()[:, None]
    torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-5)
    right = SUITE.reference(x, ones, 0 * ones)[0]
    assert (y - right).abs().max() > 0.5


def test_rows_around_0_hide_it(device: str) -> None:
    # A checker that tries normal values only, with a tolerance of a hundredth.
    inputs = SUITE.with_vectors(normal((4, 200), torch.float32, device))
    y = wrong_tail.layer_norm(*inputs)
    expected = SUITE.reference(*inputs)[0]
    assert torch.allclose(y.double(), expected, atol=1e-2, rtol=1e-2)
    with pytest.raises(AssertionError, match="above the bound"):
        check_accuracy(y, expected, SUITE.own(*inputs))


@pytest.mark.parametrize("cols", [1, 64, 128])
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=name)
def test_it_is_right_for_a_power_of_two(
    cols: int, dtype: torch.dtype, device: str
) -> None:
    inputs = SUITE.with_vectors(normal((3, cols), dtype, device) + 1)
    y = wrong_tail.layer_norm(*inputs)
    check_accuracy(y, SUITE.reference(*inputs)[0], SUITE.own(*inputs))
