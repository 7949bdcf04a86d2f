"""Tests of snippets/backward/window_backward.py."""

from typing import ClassVar

import pytest
import torch

from snippets.backward import window_backward
from tests.harness.inputs import INTERPRETED, STRUCTURED, normal
from tests.harness.poison import guarded
from tests.snippets.attention.reference import visible
from tests.snippets.attention.tiles import MASKED, SKIPPED, WHOLE, Case
from tests.snippets.backward.suite import BackwardTests
from tests.snippets.backward.tiles import trace, visited

BLOCKS = (16, 16), (32, 16), (16, 32)
CASES = (
    [
        Case(seq_q, seq_k, *blocks, {"causal": True, "window": window})
        for seq_q, seq_k in ((40, 100), (100, 40), (70, 70))
        for blocks in BLOCKS
        for window in (14, 33)  # the first key may be the last of its tile
    ]
    + [
        Case(70, 70, 16, 16, {"causal": True, "window": 32}),  # or the first
    ]
    + [
        Case(40, 50, *blocks, {"causal": causal})
        for causal in (False, True)
        for blocks in BLOCKS
    ]
)
# Some that end inside a tile or at its edge, and more than there are. One key has a
# test of its own: its dq and dk are rounding alone.
WINDOWS = (2, 5, 16, 17, 33, 1000)


def maps(case: Case) -> dict[str, list[str]]:
    """What the definition asks of each kernel: no tile in vain, no mask in vain.

    dQ needs a mask for keys beyond the last; for queries beyond it nobody does.
    """
    seen = visible(case.seq_q, case.seq_k, "cpu", **case.options)
    found: dict[str, list[str]] = {"dq": [], "dk": []}
    for rows in seen.split(case.block_m):
        tiles = rows.split(case.block_n, dim=1)
        for name, letters in found.items():
            least = case.block_n if name == "dq" else 1
            whole = [bool(x.all()) and x.shape[1] >= least for x in tiles]
            letters.append(
                "".join(
                    (WHOLE if each else MASKED) if x.any() else SKIPPED
                    for each, x in zip(whole, tiles, strict=True)
                )
            )
    return found


class Window(BackwardTests):
    """What is tried."""

    function = staticmethod(window_backward.attention_backward)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 32},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"window": (0, -1)}


WINDOW = Window()


@pytest.mark.skipif(not INTERPRETED, reason="a mask in vain shows in no result")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_and_masks_no_tile_in_vain(case: Case) -> None:
    assert trace(window_backward, case) == maps(case)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sizes", [(60, 60), (20, 70), (70, 20)], ids=str)
def test_every_window(sizes: tuple[int, int], window: int, device: str) -> None:
    inputs = [guarded(x) for x in WINDOW.inputs(*sizes, device)]
    WINDOW.check(*inputs, causal=True, window=window)


@pytest.mark.parametrize("kind", STRUCTURED)
def test_structured_inputs_in_a_window(kind: str, device: str) -> None:
    q, k, v, do = WINDOW.inputs(20, 37, device)
    q, k, v = (STRUCTURED[kind](x) for x in (q, k, v))
    for given in (do, STRUCTURED[kind](do)):
        WINDOW.check(q, k, v, given, causal=True, window=6)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_heads_that_share_keys_in_a_window(kv_heads: int, device: str) -> None:
    lead, kv_lead = (2, 4), (2, kv_heads)
    inputs = WINDOW.inputs(20, 37, device, lead=lead, kv_lead=kv_lead)
    WINDOW.check(*inputs, causal=True, window=7)


def test_lse_has_a_gradient_too_in_a_window(device: str) -> None:
    inputs = WINDOW.inputs(18, 37, device)
    dlse = normal(inputs[0].shape[:3], torch.float32, device, seed=7)
    WINDOW.check(*inputs, guarded(dlse), causal=True, window=9)


def test_every_block_size_in_a_window(device: str) -> None:
    inputs = WINDOW.inputs(70, 90, device)
    for blocks in WINDOW.blocks:
        WINDOW.check(*inputs, causal=True, window=21, blocks=blocks)


def test_scores_of_keys_out_of_the_window_may_be_huge(device: str) -> None:
    # exp(s - lse) of such a key overflows: inf * 0 where it is masked afterwards.
    q, k, v, do = WINDOW.inputs(60, 60, device)
    k[:, :, ::7] *= 500
    WINDOW.check(q, k, v, do, causal=True, window=6)


def test_keys_that_no_query_sees(device: str) -> None:
    # The window of the first query begins at key 50 - 20 + 1 - 5 = 26.
    found = WINDOW.check(*WINDOW.inputs(20, 50, device), causal=True, window=5)
    for dx in (found["dk"], found["dv"]):
        assert (dx[:, :, :26] == 0).all()
        assert (dx[:, :, 26] != 0).any()


def test_a_window_of_one_key(device: str) -> None:
    # Its weight is 1 whatever the score: dv is do, and dq, dk are rounding alone.
    q, k, v, do = WINDOW.inputs(40, 40, device, lead=(1, 4), kv_lead=(1, 4))
    found = WINDOW.run(q, k, v, do, causal=True, window=1, scale=1.0)
    torch.testing.assert_close(found["dv"], do, rtol=1e-5, atol=1e-5)
    rounding = 32 * torch.finfo(torch.float32).eps
    for x in ("dq", "dk"):
        assert found[x].abs().max() <= rounding * max(q.abs().max(), k.abs().max())


@pytest.mark.parametrize("window", [50, 2**31 - 1, 2**64])
def test_a_window_of_all_keys_is_causal(window: int, device: str) -> None:
    inputs = WINDOW.inputs(70, 50, device)
    outputs = WINDOW.forward(*inputs[:3], causal=True)
    found, causal = (
        WINDOW.run(*inputs, outputs=outputs, causal=True, **narrow)
        for narrow in ({"window": window}, {})
    )
    assert all(torch.equal(found[x], causal[x]) for x in WINDOW.outputs)


class TestWindowBackward(Window):
    @pytest.mark.parametrize(("window", "mask"), [(2, False), (0, True)])
    def test_refuses_a_window(self, window: int, mask: bool, device: str) -> None:
        inputs = self.example(device)
        with pytest.raises(ValueError, match=rf"^window is {window}; it must be .*"):
            self.function(**inputs, window=window, causal=mask)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_no_tile_in_vain(case: Case, device: str) -> None:
    # The trace of the interpreter says more.
    seen = [row.replace(MASKED, WHOLE) for row in maps(case)["dq"]]
    found = visited(window_backward.attention_backward, case, device)
    assert found == {"dq": seen, "dk": seen}
