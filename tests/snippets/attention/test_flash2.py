"""Tests of snippets/attention/flash2.py."""

import pytest
import torch

from snippets.attention import flash2
from tests.harness import accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import for_heads_of, reference
from tests.snippets.attention.suite import AttentionTests
from verified_docs.evidence.plugin import record_accuracy


def truncated(x: torch.Tensor) -> torch.Tensor:
    """float32 as the tensor cores read it for TF32: the last 13 bits are ignored."""
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)


def baseline_tf32(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) as PyTorch computes them from what TF32 keeps of each factor."""
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = truncated(q) @ truncated(k).mT * q.shape[-1] ** -0.5
    p = torch.exp(s - s.amax(dim=-1, keepdim=True))
    o = truncated(p) @ truncated(v) / p.sum(dim=-1, keepdim=True)
    return o, torch.logsumexp(s, dim=-1)


class TestFlash2(AttentionTests):
    function = staticmethod(flash2.attention)
    causal = False
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    most_rows = None

    def test_refuses_too_many_heads(self, device: str) -> None:
        q = torch.empty((256, 256, 0, 16), device=device)  # a mutant has no work
        with pytest.raises(ValueError, match=r"^q has 256 \* 256 heads; .*65535"):
            self.run(q, q, q)


# The interpreter does not model TF32: there both precisions are the same.
@pytest.mark.gpu
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_tf32(head_dim: int, device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 300, 500, head_dim, torch.float32, device)
    expected, own = reference(q, k, v), baseline_tf32(q, k, v)
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
