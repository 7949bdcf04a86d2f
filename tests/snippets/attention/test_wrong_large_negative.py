"""Tests of snippets/attention/wrong_large_negative.py: blind rows leak a mean of V."""

import pytest
import torch

from snippets.attention import wrong_large_negative
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import baseline, reference

BLOCKS = {"block_m": 16, "block_n": 16}


def test_rows_that_see_nothing_leak_a_mean_of_v(device: str) -> None:
    # Query i sees key j if j <= i - 8. The second tile of keys is skipped by the first
    # block of queries: the mean is that of the first tile, and depends on its size.
    q, k, v = qkv((), (), 40, 32, 16, torch.float32, device)
    o, lse = wrong_large_negative.attention(q * 0, k, v, **BLOCKS)
    mean = v[:16].double().mean(dim=0).expand(8, 16)
    torch.testing.assert_close(o[:8].double(), mean, rtol=0, atol=1e-6)
    larger, _ = wrong_large_negative.attention(q * 0, k, v, block_m=16, block_n=32)
    assert not torch.allclose(larger[:8], o[:8], atol=1e-2)
    expected, expected_lse = reference(q, k, v, causal=True)
    assert (expected[:8] == 0).all()
    assert (expected_lse[:8] == float("-inf")).all()
    assert ((lse[:8] > -1.1e6) & (lse[:8] < -0.9e6)).all()


def test_keys_beyond_the_last_take_part(device: str) -> None:
    # Their v is 0, but their weight is not: a mean over 16 keys, of which 12 exist.
    q, k, v = qkv((), (), 16, 12, 16, torch.float32, device)
    o, _ = wrong_large_negative.attention(q * 0, k, v, **BLOCKS)
    leaked = (v.double().sum(dim=0) / 16).expand(4, 16)
    torch.testing.assert_close(o[:4].double(), leaked, rtol=0, atol=1e-6)


def test_a_large_score_outweighs_the_mask(device: str) -> None:
    q, k, v = qkv((), (), 16, 16, 16, torch.float32, device)
    q[:, 0], k[:, 0] = 1e4, 0
    k[15, 0] = 1e3  # a score of 2.5e6 for the last key, which only the last query sees
    o, _ = wrong_large_negative.attention(q, k, v, **BLOCKS)
    torch.testing.assert_close(o, v[15:].expand(16, 16), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seq_q", [16, 30, 50])
def test_it_is_right_where_every_row_sees_a_key(seq_q: int, device: str) -> None:
    q, k, v = qkv((), (), seq_q, 50, 16, torch.float32, device)
    o, lse = wrong_large_negative.attention(q, k, v, **BLOCKS)
    expected, own = (f(q, k, v, causal=True) for f in (reference, baseline))
    check_accuracy(o, expected[0], own[0])
    assert (lse - expected[1]).abs().max() < 1e-5
