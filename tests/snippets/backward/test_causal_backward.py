"""Tests of snippets/backward/causal_backward.py."""

import pytest

from snippets.backward import causal_backward
from tests.harness.inputs import INTERPRETED
from tests.snippets.attention.tiles import MASKED, WHOLE, Case, expected
from tests.snippets.backward.suite import BackwardTests
from tests.snippets.backward.tiles import of_keys, trace, visited

CASES = [
    Case(seq_q, seq_k, block_m, block_n, {"causal": causal})
    for causal, lengths in (
        (True, ((48, 48), (33, 50), (57, 24))),
        (False, ((24, 40),)),
    )
    for seq_q, seq_k in lengths
    for block_m, block_n in ((16, 16), (32, 16), (16, 32))
]


@pytest.mark.skipif(not INTERPRETED, reason="a mask in vain shows in no result")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_and_masks_no_tile_in_vain(case: Case) -> None:
    maps = trace(causal_backward, case)
    assert maps == {"dq": expected(case), "dk": of_keys(case)}


class TestCausalBackward(BackwardTests):
    function = staticmethod(causal_backward.attention_backward)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 32},
        {"block_m": 32, "block_n": 16},
        {},
    )


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_no_tile_in_vain(case: Case, device: str) -> None:
    # The trace of the interpreter says more.
    seen = [row.replace(MASKED, WHOLE) for row in expected(case)]
    maps = visited(causal_backward.attention_backward, case, device)
    assert maps == {"dq": seen, "dk": seen}
