"""The suite of attention in Gluon: that of attention, in 16 bits."""

from typing import Any, ClassVar

import pytest
import torch

from tests.harness.inputs import HALVES, QKV, pairs_around
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal
from tests.snippets.attention.tuning import DescriptorTests
from tests.snippets.hopper.gluon import OnGpu

SEVERAL = ((127, 31), (128, 32), (129, 33), (191, 47), (192, 48), (193, 49))


def in_half(x: torch.Tensor) -> torch.Tensor:
    """float32 in float16, in the same layout, with NaN around and between."""
    if x.dtype != torch.float32 or not x.numel():
        return x.to(HALVES[0]) if x.dtype == torch.float32 else x
    half = torch.empty_strided(x.shape, x.stride(), dtype=HALVES[0], device=x.device)
    once = tuple(slice(0, 1) if n == 0 else slice(None) for n in x.stride())
    half[once].copy_(x[once])
    return half


class HopperTests(OnGpu, DescriptorTests):
    """What holds of a rung in Gluon: tiles of 64 queries, on a GPU only.

    The tests of attention that try float32 try the same values in float16 here.
    """

    causal = False
    # Around the rows of one, two and three consumers.
    lengths = (*pairs_around(64, 16), *SEVERAL)
    refused: ClassVar = {**DescriptorTests.refused, "causal": (True,)}
    blocks: ClassVar[tuple[dict[str, Any], ...]] = (
        {"block_n": 16},
        {"block_n": 64},
        {"block_n": 32},
        {},
    )

    def inputs(
        self,
        seq_q: int,
        seq_k: int,
        device: str,
        *,
        head_dim: int = 16,
        dtype: torch.dtype = HALVES[0],
    ) -> QKV:
        """q, k and v of normal values, in 16 bits."""
        return super().inputs(seq_q, seq_k, device, head_dim=head_dim, dtype=dtype)

    def example(self, device: str) -> Named:
        """q, k and v in 16 bits."""
        return {name: in_half(x) for name, x in super().example(device).items()}

    def check(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """As elsewhere, in 16 bits."""
        return super().check(*map(in_half, inputs), **options)

    def refusals(self) -> dict[str, Refusal]:
        """Also of float32; rows of 28 bytes."""
        found = super().refusals()
        short = found.pop("rows of 56 bytes").change
        found["rows of 28 bytes"] = Refusal("q .*14; it must.*8, 16", short)
        change = dict.fromkeys("qkv", lambda x: x.float())
        found["float32"] = Refusal("q is torch.float32; it must", change)
        return found

    def test_every_block_size(self, causal: bool, device: str) -> None:
        q, k, v = (guarded(x) for x in self.inputs(150, 170, device, head_dim=80))
        for blocks in (*self.blocks, {"block_n": 128}):
            self.check(q, k, v, causal=causal, blocks=blocks)

    @pytest.mark.parametrize("columns", [64, 128, 256])
    def test_many_tiles_and_programs(
        self, columns: int, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        # More tiles than places in shared memory, many times over: phases go round.
        q, k, v = self.inputs(700, 3001, device, head_dim=columns, dtype=dtype)
        first = self.check(q, k, v, causal=causal, blocks={})
        for _ in range(20):  # the order in which warps come changes no bit
            again = self.run(q, k, v, causal=causal, blocks={})
            assert all(torch.equal(again[name], x) for name, x in first.items())
