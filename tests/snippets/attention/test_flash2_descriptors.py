"""Tests of snippets/attention/flash2_descriptors.py."""

from typing import ClassVar

import pytest
import torch

from snippets.attention import flash2_descriptors
from tests.mutations import Mutation
from tests.snippets.attention.cases import (
    AttentionTests,
)
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Descriptors(AttentionTests):
    attention = staticmethod(with_blocks(flash2_descriptors))
    positive_scale = True
    aligned = True
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"input_precision": ("bf16x3", "TF32", None)}

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


# What the rung changes; the rest is that of the rungs before, and so are its mutations.
MUTATIONS = [
    Mutation(
        'key=["BLOCK_D", "CAUSAL", "ITEMSIZE"]',
        'key=["BLOCK_D", "CAUSAL"]',
        "one choice for elements of any size",
    ),
    Mutation(
        'named_args[f"BLOCK_{rows}"]',
        'named_args["BLOCK_M"]',
        "tiles of K as high as those of Q",
        may_not_compile=True,
    ),
    Mutation("kv_head = head // group", "kv_head = head", "no shared heads"),
    Mutation(
        "kv_head = head // group", "kv_head = head % group", "the heads of others"
    ),
    Mutation(
        "k_desc.load([batch, kv_head, start_n, 0])",
        "k_desc.load([0, kv_head, start_n, 0])",
        "one batch for all",
    ),
    Mutation(
        "v_desc.load([batch, kv_head, start_n, 0])",
        "v_desc.load([batch, kv_head, start_m, 0])",
        "V of other keys",
        may_not_compile=True,
    ),
    Mutation(
        "list(x.stride())",
        "list(torch.empty(x.shape).stride())",
        "strides of a contiguous tensor",
    ),
    Mutation("batch * heads + head", "head", "one lse for all"),
    Mutation(", mask=offs_m < seq_q", "", "lse written beyond its rows"),
    Mutation("x.stride(3) != 1 or ", "", "any last stride"),
    Mutation("(x.data_ptr(), *outer)", "outer", "any address"),
    Mutation("(x.data_ptr(), *outer)", "[x.data_ptr()]", "any strides"),
    Mutation(
        "if head_dim * q.element_size() % 16:", "if False:", "any length of a row"
    ),
    Mutation(
        "o.numel() == 0 or seq_k == 0", "o.numel() == 0", "a descriptor of nothing"
    ),
    Mutation(
        "return o.zero_(), lse.fill_(-math.inf)",
        "return o, lse",
        "what was never written",
    ),
]
