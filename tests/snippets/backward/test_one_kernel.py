"""Tests of snippets/backward/one_kernel.py."""

from typing import Any

import pytest
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.backward import one_kernel
from tests.harness.inputs import HALVES, INTERPRETED, far_apart, normal
from tests.harness.poison import guarded
from tests.snippets.attention.reference import visible
from tests.snippets.backward.reduce_add import teach
from tests.snippets.backward.suite import LENGTHS, RUNS, BackwardTests

EPS = torch.finfo(torch.float32).eps


def tile(block_m: int, block_n: int) -> dict[str, int]:
    """A small one."""
    return {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": 4, "num_stages": 1}


@pytest.fixture(autouse=True)
def taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter knows what a descriptor adds."""
    if INTERPRETED:
        teach(monkeypatch)


class TestOneKernel(BackwardTests):
    function = staticmethod(one_kernel.attention_backward)
    blocks = (
        {"tile": tile(16, 16)},
        {"tile": tile(16, 32)},
        {"tile": tile(32, 16)},
        {"tile": tile(16, 32), "tma": True},
        {"tile": tile(32, 16), "tma": True},
        {},
        {"tma": True},
    )
    copies = True
    dtypes = HALVES
    interpreted = (torch.float16,)
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)
    most_heads = None
    bad_head_dims = (0, 12, 264)
    # Those of dq are not: see test_runs_differ_by_rounding_alone.
    test_the_same_bits_in_every_run = None

    @pytest.fixture
    def sums(self, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
        """The fp32 sums of dq of each call, before they are scaled and rounded."""
        found: list[torch.Tensor] = []
        multiply = torch.mul

        def watched(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
            if options.get("out") is not None:
                found.append(x.clone())
            return multiply(x, *args, **options)

        monkeypatch.setattr(torch, "mul", watched)
        return found

    def most_rounding(self, *inputs: torch.Tensor, causal: bool) -> torch.Tensor:
        """What two orders of adding up the tiles of dq may differ by, at most.

        Each addition rounds by half a unit of a partial sum, which is at most the sum
        of all magnitudes.
        """
        q, k, v, do = (x.double() for x in inputs)
        seen = visible(q.shape[2], k.shape[2], q.device, causal=causal)
        s = (q @ k.mT * q.shape[-1] ** -0.5).where(seen, float("-inf"))
        p, dp = torch.softmax(s, dim=-1), do @ v.mT
        ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))
        tiles = -(-k.shape[2] // 16)
        return tiles * EPS * (ds.abs() @ k.abs())

    @pytest.mark.parametrize("tma", [False, True])
    def test_runs_differ_by_rounding_alone(
        self, tma: bool, causal: bool, sums: list[torch.Tensor], device: str
    ) -> None:
        inputs = self.inputs(33, 320, device, lead=(1, 1))
        outputs = self.forward(*inputs[:3], causal=causal)
        options = {"outputs": outputs, "causal": causal, "tma": tma}
        first = self.run(*inputs, **options)
        bound = self.most_rounding(*inputs, causal=causal)
        unit = torch.finfo(first["dq"].dtype).eps
        for _ in range(RUNS):
            again = self.run(*inputs, **options)
            assert torch.equal(first["dk"], again["dk"])
            assert torch.equal(first["dv"], again["dv"])
            assert ((sums[-1] - sums[0]).abs() <= bound).all()
            # Two neighbours may round to two sides.
            larger = torch.maximum(first["dq"].abs(), again["dq"].abs()).double()
            moved = (first["dq"].double() - again["dq"].double()).abs()
            assert (moved <= unit * larger + bound).all()

    @pytest.mark.parametrize("tma", [False, True])
    def test_another_order_of_the_same_tiles(
        self, tma: bool, sums: list[torch.Tensor], device: str
    ) -> None:
        # Blocks of keys the other way round: programs do what others did, so dk and dv
        # have the same bits, and dq is added up from its other end.
        def turned(x: torch.Tensor) -> torch.Tensor:
            return x.unflatten(2, (-1, 16)).flip(2).flatten(2, 3)

        q, k, v, do = self.inputs(33, 320, device, lead=(1, 1))
        outputs = self.forward(q, k, v)
        first = self.run(q, k, v, do, outputs=outputs, tma=tma)
        other = self.run(q, turned(k), turned(v), do, outputs=outputs, tma=tma)
        assert torch.equal(turned(first["dk"]), other["dk"])
        assert torch.equal(turned(first["dv"]), other["dv"])
        moved = (sums[0] - sums[1]).abs()
        assert moved.any()
        assert (moved <= self.most_rounding(q, k, v, do, causal=False)).all()

    # The TMA unit finds the place of a tile itself, and leaves out what is outside.

    @pytest.mark.parametrize("lengths", LENGTHS, ids=str)
    def test_every_length_by_tma(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = [guarded(x) for x in self.inputs(*lengths, device, head_dim=40)]
        self.check(*inputs, causal=causal, tma=True)

    def test_every_head_dim_by_tma(
        self, head_dim: int, causal: bool, device: str
    ) -> None:
        inputs = self.inputs(70, 140, device, head_dim=head_dim)
        self.check(*inputs, causal=causal, blocks={"tma": True})

    def test_heads_that_share_keys_by_tma(
        self, kv_heads: int, causal: bool, device: str
    ) -> None:
        inputs = self.inputs(5, 20, device, lead=(2, 4), kv_lead=(2, kv_heads))
        self.check(*inputs, causal=causal, tma=True)

    def test_rows_that_see_nothing_by_tma(self, causal: bool, device: str) -> None:
        inputs = self.inputs(40, 24, device)
        found = self.check(*inputs, causal=causal, tma=True)
        assert found["dq"][:, :, :16].any() != causal

    def test_a_cut_tile_of_keys_is_masked(self, device: str) -> None:
        # Whether it is cut depends on the tile. Unmasked, its weights are infinite.
        q, k, v, do = self.inputs(18, 48, device)
        for blocks in self.blocks:
            inputs = q.abs() + 5, -k.abs() - 5, v, do
            self.check(*inputs, scale=1.0, blocks=blocks)

    @pytest.mark.large
    @pytest.mark.skipif(
        not INTERPRETED, reason="test_more_than_31_bits_of_elements does it for real"
    )
    def test_sums_beyond_31_bits(self, device: str) -> None:
        # The last 20 of 2^23 queries and 20 keys: a causal mask skips the others.
        short, long = 20, 2**23 + 20
        sizes = (1, 1, short, 256), (1, 1, long, 256)
        q, do, k, v = (
            normal(sizes[0], torch.float16, device, seed=seed) for seed in range(4)
        )
        found = []
        for size in sizes:
            at_end = []
            for x in (q, do, torch.zeros(q.shape)):
                far = far_apart((3, short * 256), 0, x.dtype, device).zero_()
                whole = far.as_strided(size, torch.empty(size, device="meta").stride())
                whole[:, :, -short:] = x
                at_end.append(whole)
            *queries, dq_sum = at_end
            rows = torch.zeros(size[:3])
            dk, dv = torch.empty_like(k), torch.empty_like(v)
            one_kernel.backward_kernel[(2,)](
                *(
                    TensorDescriptor.from_tensor(x, [1, 1, 16, 256])
                    for x in (*queries, k, v, dk, dv)
                ),
                dq_sum, rows, rows, 0.1, 1, size[2], short, GROUP=1, CAUSAL=True,
                MASKED=True, TMA=False, HEAD_DIM=256, BLOCK_D=256, **tile(16, 16),
            )  # fmt: skip
            found.append((dq_sum[:, :, -short:].clone(), dk, dv))
        assert found[0][0].any()
        assert all(map(torch.equal, *found))
