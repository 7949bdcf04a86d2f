"""Tests of snippets/softmax/wrong_blocks.py: each tile sums to 1, not each row."""

import pytest
import torch

from snippets.softmax import wrong_blocks
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.snippets.softmax.suite import baseline, reference


@pytest.mark.parametrize(("cols", "tiles"), [(65, 2), (200, 4)])
def test_a_row_sums_to_the_number_of_its_tiles(
    cols: int, tiles: int, device: str
) -> None:
    y = wrong_blocks.softmax(normal((3, cols), torch.float32, device), block_cols=64)
    total = y.double().sum(dim=-1)
    torch.testing.assert_close(total, torch.full_like(total, tiles), atol=0, rtol=1e-6)


def test_each_tile_is_a_softmax_of_its_own(device: str) -> None:
    x = normal((3, 200), torch.float32, device)
    y = wrong_blocks.softmax(x, block_cols=64)
    for got, part in zip(y.split(64, dim=1), x.split(64, dim=1), strict=True):
        check_accuracy(got, reference(part), baseline(part))
    assert (y - reference(x)).abs().max() > 0.01


@pytest.mark.parametrize("cols", [1, 63, 64])
def test_it_is_right_for_a_single_tile(cols: int, device: str) -> None:
    x = normal((3, cols), torch.float32, device) - 500
    check_accuracy(wrong_blocks.softmax(x, block_cols=64), reference(x), baseline(x))
