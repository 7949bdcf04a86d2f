"""Tests of snippets/attention/split_kv_overlapped.py."""

import pytest
import torch

from snippets.attention import split_kv_overlapped
from tests.harness.inputs import qkv
from tests.harness.poison import Poison
from tests.snippets.attention.caches import check_that_launches_wait
from tests.snippets.attention.splits import SplitTests


class TestSplitKvOverlapped(SplitTests):
    function = staticmethod(split_kv_overlapped.attention)


@pytest.mark.gpu
@pytest.mark.parametrize("splits", [1, 16])
def test_launches_wait_for_each_other(
    splits: int, device: str, poisoned: Poison
) -> None:
    # With so large a scale each output is a row of v, and another one each time.
    q, k, v = qkv((1, 8), (1, 4), 1, 8000, 128, torch.float16, device)
    check_that_launches_wait(
        lambda q: split_kv_overlapped.attention(q, k, v, scale=10.0, splits=splits)[0],
        q,
        k,
        poisoned,
    )
