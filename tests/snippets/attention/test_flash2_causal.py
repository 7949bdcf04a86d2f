"""Tests of snippets/attention/flash2_causal.py."""

import pytest
import torch
from torch.nn.attention.bias import causal_lower_right

from snippets.attention import flash2_causal
from tests.harness.inputs import INTERPRETED
from tests.snippets.attention.suite import AttentionTests
from tests.snippets.attention.tiles import MASKED, WHOLE, Case, expected, trace, visited

CASES = [
    Case(seq_q, seq_k, block_m, block_n, {"causal": causal})
    for seq_q, seq_k in ((64, 64), (40, 100), (100, 40))
    for block_m, block_n in ((16, 16), (32, 16), (16, 32))
    for causal in (False, True)
]


class TestFlash2Causal(AttentionTests):
    function = staticmethod(flash2_causal.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    most_rows = None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_no_tile_in_vain(case: Case, device: str) -> None:
    seen = [row.replace(MASKED, WHOLE) for row in expected(case)]
    assert visited(flash2_causal.attention, case, device) == seen


@pytest.mark.skipif(not INTERPRETED, reason="a mask in vain shows in no result")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_masks_no_tile_in_vain(case: Case) -> None:
    assert trace(flash2_causal.attention, case) == expected(case)


@pytest.mark.parametrize(("seq_q", "seq_k"), [(20, 20), (5, 20)])
def test_torch_agrees_on_the_lower_right(seq_q: int, seq_k: int, device: str) -> None:
    q, k, v = (torch.randn(2, 2, n, 16, device=device) for n in (seq_q, seq_k, seq_k))
    o, _ = flash2_causal.attention(q, k, v, causal=True)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    lower_right = sdpa(q, k, v, attn_mask=causal_lower_right(seq_q, seq_k))
    torch.testing.assert_close(o, lower_right, rtol=0, atol=1e-5)
    upper_left = sdpa(q, k, v, is_causal=True)
    assert torch.allclose(o, upper_left, rtol=0, atol=1e-5) == (seq_q == seq_k)


def test_a_nan_of_v_shows_in_rows_that_do_not_see_it(device: str) -> None:
    # 0 * NaN is NaN: here as in PyTorch. Only a tile that is skipped hides it.
    q, k, v = (torch.randn(1, 1, 48, 16, device=device) for _ in range(3))
    v[..., 40, :] = float("nan")
    o, _ = flash2_causal.attention(q, k, v, causal=True, block_m=16, block_n=16)
    assert o[..., :32, :].isfinite().all()
    assert o[..., 32:, :].isnan().all()
