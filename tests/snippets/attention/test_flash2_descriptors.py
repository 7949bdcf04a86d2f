"""Tests of snippets/attention/flash2_descriptors.py."""

import pytest
import torch

from snippets.attention import flash2_descriptors
from tests.snippets.attention.suite import AttentionTests
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Descriptors(AttentionTests):
    function = staticmethod(with_blocks(flash2_descriptors))
    scales = (0.3, 1.0)
    aligned = True
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )

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


class TestTuning(TuningTests):
    module = flash2_descriptors
