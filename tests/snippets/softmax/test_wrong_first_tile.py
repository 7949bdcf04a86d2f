"""Tests of snippets/softmax/wrong_first_tile.py: NaN after a first tile of -inf."""

import pytest
import torch

from snippets.softmax import wrong_first_tile
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.snippets.softmax.suite import baseline, reference


def test_a_first_tile_of_minus_inf_gives_nan(device: str) -> None:
    x = normal((3, 200), torch.float32, device)
    x[1, :64] = float("-inf")
    y = wrong_first_tile.softmax(x, block_cols=64)
    assert y[1].isnan().all()
    assert reference(x)[1].isfinite().all(), "torch.softmax has an answer"


@pytest.mark.parametrize("where", [slice(None, 63), slice(64, None), slice(1, None, 2)])
def test_it_is_right_where_the_first_tile_has_a_value(
    where: slice, device: str
) -> None:
    x = normal((3, 200), torch.float32, device)
    x[1, where] = float("-inf")
    y = wrong_first_tile.softmax(x, block_cols=64)
    check_accuracy(y, reference(x), baseline(x))
