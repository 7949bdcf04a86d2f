"""Tests of snippets/attention/wrong_small_block.py: wrong if block_m < block_n."""

import pytest
import torch

from snippets.attention import wrong_small_block
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import baseline, reference


def weights(seq: int, block_m: int, block_n: int, device: str) -> torch.Tensor:
    """[seq, seq]: how much each query takes of each key, all scores being 0."""
    q, k, v = (torch.zeros(seq, 64, device=device) for _ in range(3))
    v[:, :seq] = torch.eye(seq)
    o = wrong_small_block.attention(q, k, v, block_m=block_m, block_n=block_n)
    return o[:, :seq]


@pytest.mark.parametrize(("block_m", "block_n"), [(16, 32), (16, 64), (32, 64)])
def test_it_is_wrong_by_a_fifth(block_m: int, block_n: int, device: str) -> None:
    q, k, v = qkv((), (), 256, 256, 64, torch.float32, device)
    o = wrong_small_block.attention(q, k, v, block_m=block_m, block_n=block_n)
    expected, _ = reference(q, k, v, causal=True)
    assert 0.1 < (o - expected).norm() / expected.norm() < 1


def test_keys_of_the_future_have_a_weight_and_some_count_twice(device: str) -> None:
    # The second block of 16 queries begins in the middle of a tile of 32 keys: query
    # 16 takes all of the tile, and then key 16 once more.
    wrong = weights(32, 16, 32, device)[16]
    once = torch.full((32,), 1 / 33, device=device)
    once[16] *= 2
    torch.testing.assert_close(wrong, once, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seq", [64, 192])
@pytest.mark.parametrize(("block_m", "block_n"), [(16, 16), (64, 32), (64, 64)])
def test_it_is_right_where_block_n_divides_block_m(
    seq: int, block_m: int, block_n: int, device: str
) -> None:
    q, k, v = qkv((), (), seq, seq, 16, torch.float32, device)
    o = wrong_small_block.attention(q, k, v, block_m=block_m, block_n=block_n)
    expected, own = (f(q, k, v, causal=True)[0] for f in (reference, baseline))
    check_accuracy(o, expected, own)
