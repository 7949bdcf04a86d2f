"""Tests of snippets/attention/wrong_tail_keys.py: its weights do not sum to 1."""

import pytest
import torch

from snippets.attention import wrong_tail_keys
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import qkv
from tests.harness.poison import guarded
from tests.snippets.attention.reference import baseline, reference

SIZES = {"block_m": 16, "block_n": 32}


@pytest.mark.parametrize("seq_k", [20, 200, 1000])
def test_weights_sum_to_less_than_one(seq_k: int, device: str) -> None:
    q, k, v = qkv((), (), 16, seq_k, 16, torch.float32, device)
    o = wrong_tail_keys.attention(q, k, torch.ones_like(v), **SIZES)
    # Each key that is missing in the last tile counts as one with a score of 0.
    missing = -seq_k % SIZES["block_n"]
    right = reference(q, k, v)[1].exp()
    expected = (right / (right + missing))[:, None].expand(o.shape)
    torch.testing.assert_close(o.double(), expected, rtol=1e-5, atol=0)


def test_lower_scores_show_it(device: str) -> None:
    q, k, v = qkv((), (), 16, 200, 16, torch.float32, device)
    q[:, 0], k[:, 0] = 4, -20
    o = wrong_tail_keys.attention(q, k, torch.ones_like(v), **SIZES)
    assert (o < 1e-3).all()


def test_it_is_right_where_the_tiles_fit(device: str) -> None:
    q, k, v = (guarded(x) for x in qkv((), (), 20, 96, 16, torch.float32, device))
    o = wrong_tail_keys.attention(q, k, v, **SIZES)
    check_accuracy(o, reference(q, k, v)[0], baseline(q, k, v)[0])
