"""Tests of snippets/attention/flash2_persistent.py."""

from collections import Counter
from typing import Any, ClassVar

import pytest
import torch
from triton.runtime.interpreter import InterpreterBuilder

from snippets.attention import flash2_persistent
from tests.harness.inputs import INTERPRETED, qkv
from tests.snippets.attention.tuning import DescriptorTests, TuningTests, with_blocks


class TestFlash2Persistent(DescriptorTests):
    function = staticmethod(with_blocks(flash2_persistent))
    # The first and the last have several tiles for each program.
    blocks = (
        {"block_m": 16, "block_n": 16, "programs": 3},
        {"block_m": 16, "block_n": 64, "programs": 1000},
        {"block_m": 32, "block_n": 16, "programs": 4},
        {"programs": 1},
    )
    refused: ClassVar = {**DescriptorTests.refused, "programs": (0, -1)}

    @pytest.mark.parametrize("programs", [1, 3, 1000])
    def test_any_number_of_programs(
        self, programs: int, causal: bool, device: str
    ) -> None:
        inputs = self.inputs(70, 50, device)
        blocks = {**self.blocks[0], "programs": programs}
        self.check(*inputs, causal=causal, blocks=blocks)


@pytest.mark.skipif(not INTERPRETED, reason="counts what the interpreter loads")
@pytest.mark.parametrize("programs", [3, 8, 11])
def test_causal_work_is_dealt_out_evenly(
    programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = qkv((2, 3), (2, 1), 128, 128, 16, torch.float32, "cpu")
    load = InterpreterBuilder.create_descriptor_load
    visits: Counter[int] = Counter()

    def counted(self: Any, desc: Any, *args: Any) -> Any:
        visits[self.grid_idx[0]] += desc.base.data.item() == k.data_ptr()
        return load(self, desc, *args)

    monkeypatch.setattr(InterpreterBuilder, "create_descriptor_load", counted)
    TestFlash2Persistent.function(
        q, k, v, causal=True, programs=programs, block_m=16, block_n=16
    )
    # Blocks of 1, 2, ..., 8 tiles in each of 6 heads.
    assert visits.total() == 6 * 36
    assert len(visits) == programs
    assert max(visits.values()) - min(visits.values()) <= 8


class TestTuning(TuningTests):
    module = flash2_persistent
