"""Tests of snippets/attention/flash2_persistent.py."""

from collections import Counter
from typing import Any, ClassVar

import pytest
import torch
from triton.runtime.interpreter import InterpreterBuilder

from snippets.attention import flash2_persistent
from tests.harness.inputs import INTERPRETED, qkv
from tests.snippets.attention.suite import AttentionTests
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Persistent(AttentionTests):
    function = staticmethod(with_blocks(flash2_persistent))
    scales = (0.3, 1.0)
    aligned = True
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {
        "programs": (0, -1, 65537, 1.5),
    }

    def test_refuses_other_strides(self, device: str) -> None:
        q, k, v = self.inputs(20, 20, device, dtype=torch.float16)
        for wrong in (
            lambda x: x.mT.contiguous().mT,
            lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
            lambda x: torch.cat([x, x[..., :1]], dim=-1)[..., :16],
            lambda x: torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape),
        ):
            for at, argument in enumerate("qkv"):
                tensors = [q, k, v]
                tensors[at] = wrong(tensors[at])
                with pytest.raises(ValueError, match=f"^{argument} .*16 bytes"):
                    self.run(*tensors)

    def test_refuses_rows_that_are_not_aligned(self, device: str) -> None:
        inputs = self.inputs(3, 5, device, head_dim=12, dtype=torch.float16)
        with pytest.raises(ValueError, match=r"^q has head_dim 12; .*16 bytes"):
            self.run(*inputs)

    @pytest.mark.parametrize("programs", [1, 3, 1000])
    def test_any_number_of_programs(
        self, programs: int, causal: bool, device: str
    ) -> None:
        inputs = self.inputs(70, 50, device)
        self.check(
            *inputs,
            causal=causal,
            blocks={**self.blocks[0], "programs": programs},
        )


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
