"""Tests of snippets/attention/flash2.py."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
import torch

from snippets.attention import flash2
from tests.harness import accuracy
from tests.mutations import Mutation
from tests.snippets.attention.cases import (
    FINISH_MUTATIONS,
    HEAD_MUTATIONS,
    HEAD_REFUSAL_MUTATIONS,
    LAUNCH_MUTATIONS,
    LOOP_MUTATIONS,
    ONLINE_MUTATIONS,
    POINTER_MUTATIONS,
    AttentionTests,
    baseline,
    qkv,
    reference,
    refusal_mutations,
)
from verified_docs.recording import record_accuracy


@pytest.fixture
def tf32() -> Iterator[None]:
    """PyTorch's own float32 matrix products in TF32, as the kernel's."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


class TestFlash2(AttentionTests):
    attention = staticmethod(flash2.attention)
    causal = False
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"input_precision": ("bf16x3", "TF32", None)}

    def test_refuses_too_many_heads(self, device: str) -> None:
        q = torch.empty((256, 256, 0, 16), device=device)  # a mutant has no work
        with pytest.raises(ValueError, match=r"^q has 256 \* 256 heads; .*65535"):
            self.run(q, q, q)


# The interpreter does not model TF32: there both precisions are the same.
@pytest.mark.gpu
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_tf32(head_dim: int, device: str, tf32: None) -> None:
    q, k, v = qkv((2, 4), (2, 2), 300, 500, head_dim, torch.float32, device)
    expected, own = reference(q, k, v), baseline(q, k, v)
    for blocks in TestFlash2.blocks:
        o, lse = flash2.attention(q, k, v, input_precision="tf32", **blocks)
        found = accuracy.compare(o, expected[0], own[0])
        record_accuracy("tf32", found.error, found.bound)
        accuracy.compare(lse, expected[1], own[1])


@pytest.mark.gpu
def test_ieee_is_closer_than_tf32(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 300, 500, 64, torch.float32, device)
    expected, _ = reference(q, k, v)
    ieee, tf32 = (
        (flash2.attention(q, k, v, input_precision=precision)[0] - expected).abs().max()
        for precision in ("ieee", "tf32")
    )
    assert ieee < tf32 / 50


MUTATIONS = [
    *POINTER_MUTATIONS,
    *HEAD_MUTATIONS,
    *ONLINE_MUTATIONS,
    *FINISH_MUTATIONS,
    *LOOP_MUTATIONS,
    *LAUNCH_MUTATIONS,
    *refusal_mutations(4),
    *HEAD_REFUSAL_MUTATIONS,
    Mutation("batch * heads > 65535", "False", "a grid too high for the GPU"),
    Mutation('("ieee", "tf32")', '("ieee", "tf32", None)', "no precision"),
]
