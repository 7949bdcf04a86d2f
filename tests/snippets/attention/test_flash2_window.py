"""Tests of snippets/attention/flash2_window.py."""

from typing import ClassVar

import pytest
import torch

from snippets.attention import flash2_window
from tests.harness.inputs import INTERPRETED
from tests.snippets.attention.suite import WindowTests
from tests.snippets.attention.tiles import MASKED, WHOLE, Case, expected, trace, visited

CASES = [
    Case(seq_q, seq_k, block_m, block_n, {"causal": True, "window": window})
    for seq_q, seq_k in ((40, 100), (100, 40))
    for block_m, block_n in ((16, 16), (32, 16), (16, 32))
    for window in (14, 38)  # the first key may be the last of its tile
]


class TestFlash2Window(WindowTests):
    function = staticmethod(flash2_window.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    most_rows = None
    refused: ClassVar = {
        "window": (0, -1),
    }

    def test_refuses_a_window_without_causal(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"^causal is False; .*must be True"):
            self.run(*self.inputs(3, 5, device), window=2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_no_tile_in_vain(case: Case, device: str) -> None:
    seen = [row.replace(MASKED, WHOLE) for row in expected(case)]
    assert visited(flash2_window.attention, case, device) == seen


@pytest.mark.skipif(not INTERPRETED, reason="a mask in vain shows in no result")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_masks_no_tile_in_vain(case: Case) -> None:
    assert trace(flash2_window.attention, case) == expected(case)


def test_a_window_of_one_key_is_v(device: str) -> None:
    q, k, v = (torch.randn(1, 2, 40, 16, device=device) for _ in range(3))
    o, _ = flash2_window.attention(q, k, v, causal=True, window=1)
    assert torch.equal(o, v)


@pytest.mark.parametrize("window", [50, 2**31 - 1, 2**64])
def test_a_window_of_all_keys_is_causal(window: int, device: str) -> None:
    q, k, v = (torch.randn(1, 2, n, 16, device=device) for n in (70, 50, 50))
    o, lse = flash2_window.attention(q, k, v, causal=True, window=window)
    o_causal, lse_causal = flash2_window.attention(q, k, v, causal=True)
    # The same tiles in another order.
    torch.testing.assert_close(o, o_causal, rtol=0, atol=1e-6)
    torch.testing.assert_close(lse, lse_causal, rtol=0, atol=1e-6)
