"""Tests of snippets/hopper/gluon_backward.py."""

from typing import ClassVar

import pytest
import torch

from snippets.hopper import gluon_backward
from tests.harness.inputs import pairs_around
from tests.harness.poison import guarded
from tests.snippets.attention.reference import visible
from tests.snippets.backward.suite import LENGTHS, RUNS, BackwardTests
from tests.snippets.hopper.gluon import NO_ACCURACY, OnGpu  # noqa: F401

EPS = torch.finfo(torch.float32).eps
KEYS = 128  # of a tile


class TestGluonBackward(OnGpu, BackwardTests):
    function = staticmethod(gluon_backward.attention_backward)
    copies = True
    head_dims = (16, 32, 40, 64, 80, 96, 128)
    most_heads = None
    bad_head_dims: ClassVar = (0, 12, 136, 256, 264)
    # Those of dq are not: see test_runs_differ_by_rounding_alone.
    test_the_same_bits_in_every_run = None
    test_every_block_size = None  # there is one

    # With a single key dq is 0, and what is computed is what rounding leaves of that.
    @pytest.mark.parametrize(
        "lengths", [n for n in pairs_around(64, KEYS) if n[1] > 1], ids=str
    )
    def test_lengths_around_a_tile(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        for head_dim in (40, 128):
            inputs = self.inputs(*lengths, device, head_dim=head_dim)
            self.check(*(guarded(x) for x in inputs), causal=causal)

    @pytest.mark.parametrize("lengths", LENGTHS, ids=str)
    def test_every_length_in_wide_tiles(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = [guarded(x) for x in self.inputs(*lengths, device, head_dim=104)]
        self.check(*inputs, causal=causal)

    def test_heads_that_share_keys_over_many_tiles(
        self, kv_heads: int, causal: bool, device: str
    ) -> None:
        # Tiles of one head follow those of another in the same places.
        for head_dim in (64, 128):
            inputs = self.inputs(
                330, 300, device, lead=(2, 4), kv_lead=(2, kv_heads), head_dim=head_dim
            )
            self.check(*inputs, causal=causal)

    @pytest.mark.parametrize("heads", [1, 3, 5, 6, 8])
    def test_heads_take_turns_by_fours(
        self, heads: int, causal: bool, device: str
    ) -> None:
        inputs = self.inputs(200, 330, device, lead=(1, heads), head_dim=64)
        self.check(*inputs, causal=causal)

    def test_rows_that_see_nothing_over_many_tiles(self, device: str) -> None:
        inputs = self.inputs(400, 150, device, head_dim=128)
        found = self.check(*inputs, causal=True)
        assert not found["dq"][:, :, :250].any()
        assert found["dq"][:, :, 251:].any(dim=-1).all()

    def test_a_cut_tile_of_keys_is_masked(self, device: str) -> None:
        # Unmasked, the weights of keys that do not exist are infinite.
        for seq_k in (130, 192):
            q, k, v, do = self.inputs(70, seq_k, device)
            self.check(q.abs() + 5, -k.abs() - 5, v, do, scale=1.0)

    def most_rounding(self, *inputs: torch.Tensor, causal: bool) -> torch.Tensor:
        """What two orders of adding up the tiles of dq may differ by, at most.

        Each addition rounds by half a unit of a partial sum, which is at most the sum
        of all magnitudes.
        """
        q, k, v, do = (x.double() for x in inputs)
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        seen = visible(q.shape[2], k.shape[2], q.device, causal=causal)
        s = (q @ k.mT * q.shape[-1] ** -0.5).where(seen, float("-inf"))
        p, dp = torch.softmax(s, dim=-1), do @ v.mT
        ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))
        scale = q.shape[-1] ** -0.5
        return -(-k.shape[2] // KEYS) * EPS * scale * (ds.abs() @ k.abs())

    @pytest.mark.parametrize("columns", [64, 128])
    def test_runs_differ_by_rounding_alone(
        self, columns: int, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        # More tiles than places in shared memory, many times over: phases go round.
        inputs = self.inputs(1500, 2001, device, head_dim=columns, dtype=dtype)
        outputs = self.forward(*inputs[:3], causal=causal)
        first = self.check(*inputs, outputs=outputs, causal=causal)
        bound = self.most_rounding(*inputs, causal=causal)
        unit = torch.finfo(dtype).eps
        for _ in range(RUNS):
            again = self.run(*inputs, outputs=outputs, causal=causal)
            assert torch.equal(first["dk"], again["dk"])
            assert torch.equal(first["dv"], again["dv"])
            # Two neighbours may round to two sides.
            larger = torch.maximum(first["dq"].abs(), again["dq"].abs()).double()
            moved = (first["dq"].double() - again["dq"].double()).abs()
            assert (moved <= unit * larger + bound).all()
