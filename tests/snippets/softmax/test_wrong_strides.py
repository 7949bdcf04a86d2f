"""Tests of snippets/softmax/wrong_strides.py: it leaves y, or fills it wrongly."""

import pytest
import torch

from snippets.softmax import wrong_strides
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.snippets.softmax.suite import baseline, reference


@pytest.mark.leaves_tensors
def test_a_sliced_input_sends_rows_outside(device: str) -> None:
    # Row 3 starts at element 3 * 150 of an output of 4 * 100.
    wrong_strides.softmax(normal((4, 150), torch.float32, device)[:, :100])


def test_an_expanded_input_fills_the_first_row_only(device: str) -> None:
    x = normal((1, 100), torch.float32, device).expand(4, 100)
    y = wrong_strides.softmax(x)
    torch.testing.assert_close(y[0].double(), reference(x)[0])
    assert y[1:].isnan().all(), "rows 1 to 3 are as torch.empty_like left them"


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_it_is_right_where_the_layouts_agree(layout: str, device: str) -> None:
    x = normal((4, 100), torch.float32, device) + 500
    if layout == "transposed":
        x = x.T.contiguous().T
    y = wrong_strides.softmax(x)
    check_accuracy(y, reference(x), baseline(x))
    assert y.stride() == x.stride()
