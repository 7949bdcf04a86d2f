"""Tests of snippets/companions/attention_dropout.py."""

import functools
from typing import Any

import pytest
import torch

from snippets.companions import attention_dropout
from tests.harness.inputs import HEAD_LAYOUTS, INF, STRUCTURED, far_apart, qkv
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.harness.suite import Named
from tests.snippets.companions.attended import LEAD, SEED, Dropped, P, weights
from tests.snippets.companions.dropped import check_share, check_uncorrelated
from tests.snippets.companions.philox import KNOWN, halves, kept_weights, philox

MASK_BLOCKS = ((16, 16), (32, 64), (8, 128))


@functools.wraps(attention_dropout.attention)
def attention(q: torch.Tensor, *inputs: torch.Tensor, **options: Any) -> Any:
    """With a p and a seed, if none is given."""
    options = {"p": P, "seed": torch.tensor(SEED, device=q.device), **options}
    return attention_dropout.attention(q, *inputs, **options)


class TestAttentionDropout(Dropped):
    function = staticmethod(attention)
    outputs = ("o", "lse")

    def example(self, device: str) -> Named:
        """q, k and v."""
        return dict(zip("qkv", self.inputs(3, 5, device), strict=True))

    def reference(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """In float64."""
        return weights(*(x.double() for x in inputs), **asked)

    def baseline(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """o in the dtype of the inputs; lse in float32."""
        o, _ = weights(*inputs, **asked)
        return o, weights(*(x.float() for x in inputs), **asked)[1]

    def test_every_length(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = [guarded(x) for x in self.inputs(*lengths, device, lead=(1, 1))]
        self.check(*inputs, causal=causal)

    def test_every_dtype(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        inputs = self.inputs(19, 37, device, head_dim=24, dtype=dtype)
        self.check(*(guarded(x) for x in inputs), causal=causal)

    def test_the_tile_changes_nothing(self, causal: bool, device: str) -> None:
        inputs = self.inputs(40, 70, device, lead=(1, 1))
        first, *others = (
            self.check(*inputs, causal=causal, blocks=blocks)["o"]
            for blocks in self.blocks
        )
        for o in others:
            torch.testing.assert_close(o, first, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("layout", HEAD_LAYOUTS)
    def test_every_layout(self, layout: str, device: str) -> None:
        views = list(HEAD_LAYOUTS.values())
        first = list(HEAD_LAYOUTS).index(layout)
        inputs = self.inputs(5, 20, device)
        q, k, v = (
            guarded(views[(first + step) % len(views)](x))
            for step, x in zip((0, 1, 3), inputs, strict=True)
        )
        o = self.check(q, k, v)["o"]
        assert o.stride() == torch.empty_like(q, device="meta").stride()

    @pytest.mark.parametrize("p", [0.0, 0.999, 1.0])
    def test_every_p(self, p: float, dtype: torch.dtype, device: str) -> None:
        inputs = self.inputs(18, 40, device, dtype=dtype, lead=(1, 2))
        o, lse = self.check(*inputs, p=p).values()
        assert p < 1 or (o == 0).all()
        # Whatever is dropped, lse is that of all scores.
        assert torch.equal(lse, self.run(*inputs, p=0.0)["lse"])

    @pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63 - 1])
    def test_every_seed(self, seed: int, device: str) -> None:
        inputs = self.inputs(18, 20, device)
        self.check(*inputs, seed=self.seed(device, seed))

    def test_the_number_that_is_the_threshold_stays(self, device: str) -> None:
        p = halves(SEED, (1, 3, 0, 0))[2] / 65536  # of head 0, row 3, key 10
        self.check(*self.inputs(18, 20, device), p=p)

    @pytest.mark.parametrize("scale", [0.0, 1.0, -0.3])
    def test_every_scale(self, scale: float, device: str) -> None:
        self.check(*self.inputs(18, 20, device), scale=scale)

    @pytest.mark.parametrize("head_dim", [1, 40, 64, 80, 256])
    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        inputs = self.inputs(17, 20, device, head_dim=head_dim, dtype=torch.float16)
        self.check(*(guarded(x) for x in inputs))

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, causal: bool, device: str) -> None:
        inputs = self.inputs(20, 37, device, dtype=torch.float16, lead=(1, 1))
        self.check(*(STRUCTURED[kind](x) for x in inputs), causal=causal)

    def test_one_weight_at_a_time(self, device: str) -> None:
        # v is the identity: o is the matrix of weights itself.
        q, k, _ = self.inputs(20, 32, device, head_dim=32)
        o = self.run(q, k, torch.eye(32, device=device).expand_as(k))["o"]
        keep = kept_weights((*LEAD, 20, 32), p=P, seed=SEED, device=device)
        assert torch.equal(o != 0, keep)

    def test_scores_of_minus_inf(self, device: str) -> None:
        q, k, v = self.inputs(17, 41, device)
        q[..., 0], k[..., :35, 0] = 1, -INF
        self.check(q, k, v)

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
    def test_empty(self, seq_q: int, seq_k: int, causal: bool, device: str) -> None:
        inputs = self.inputs(seq_q, seq_k, device)
        o, lse = self.check(*inputs, causal=causal).values()
        assert (o == 0).all()
        assert (lse == -INF).all()

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0)])
    def test_no_batch_or_no_heads(self, lead: tuple[int, int], device: str) -> None:
        o, lse = self.run(*self.inputs(5, 6, device, lead=lead)).values()
        assert (o.shape, lse.shape) == ((*lead, 5, 16), (*lead, 5))

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(40, 9), (40, 24)])
    def test_rows_that_see_nothing(self, seq_q: int, seq_k: int, device: str) -> None:
        inputs = self.inputs(seq_q, seq_k, device, lead=(1, 1))
        o, lse = self.check(*inputs, causal=True).values()
        assert (o[..., : seq_q - seq_k, :] == 0).all()
        assert (lse[..., : seq_q - seq_k] == -INF).all()

    def test_large_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        q, k, v = self.inputs(40, 40, device, head_dim=80, dtype=dtype, lead=(1, 1))
        q, k = q.fill_(5e4), k.fill_(5e4)
        o = self.run(q, k, v, causal=causal, p=0.0)["o"]
        assert o.isfinite().all()

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        for axis in range(4):
            inputs = (
                far_apart((3, 3, 3, 3), axis, torch.float16, device, seed=seed)
                for seed in range(3)
            )
            self.check(*inputs)

    @pytest.mark.gpu
    @pytest.mark.parametrize("head_dim", [64, 128])
    @pytest.mark.parametrize("seq_q", [1000, 1024])
    def test_many_rows(
        self, seq_q: int, head_dim: int, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        inputs = qkv((2, 3), (2, 3), seq_q, 1024, head_dim, dtype, device)
        self.check(*inputs, causal=causal, blocks={})


class TestMask:
    """The mask that is handed out is the one that is drawn, and looks like chance."""

    @pytest.mark.parametrize("blocks", MASK_BLOCKS, ids=str)
    @pytest.mark.parametrize("seed", [7, 2**63 - 1])
    def test_every_tile(self, blocks: tuple[int, int], seed: int, device: str) -> None:
        for shape in ((2, 2, 20, 70), (1, 1, 1, 1)):
            found = attention_dropout.keep_mask(
                shape,
                p=P,
                seed=torch.tensor(seed, device=device),
                block_m=blocks[0],
                block_n=blocks[1],
            )
            assert torch.equal(
                found, kept_weights(shape, p=P, seed=seed, device=device)
            )

    @pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
    def test_as_many_stay_as_should(self, p: float, device: str) -> None:
        check_share(self.mask((2, 2, 64, 256), device, p=p), p)

    def test_neighbours_are_uncorrelated(self, device: str) -> None:
        keep = self.mask((2, 2, 64, 256), device)
        check_uncorrelated(keep[0], keep[1])
        check_uncorrelated(keep[:, 0], keep[:, 1])
        for lag in (1, 2, 16, 32):
            check_uncorrelated(keep[:, :, lag:], keep[:, :, :-lag])
        for lag in (*range(1, 10), 16, 64):
            check_uncorrelated(keep[..., lag:], keep[..., :-lag])
        # Row i and key j are not the same as row j and key i.
        check_uncorrelated(keep[..., :64], keep[..., :64].mT)

    @pytest.mark.parametrize("other", [1, 2**32, 2**62])
    def test_two_seeds_are_uncorrelated(self, other: int, device: str) -> None:
        a, b = (self.mask((1, 2, 64, 256), device, seed=seed) for seed in (0, other))
        assert not torch.equal(a, b)
        check_uncorrelated(a, b)

    @pytest.mark.parametrize("shape", [(0, 1, 2, 3), (1, 1, 0, 3), (1, 1, 3, 0)])
    def test_empty(self, shape: tuple[int, ...], device: str) -> None:
        assert self.mask(shape, device).shape == shape

    def test_launches_on_the_device_of_the_seed(self, device: str) -> None:
        def mask(seed: torch.Tensor) -> torch.Tensor:
            return attention_dropout.keep_mask((1, 1, 3, 3), p=P, seed=seed)

        function = functools.wraps(attention_dropout.keep_mask)(mask)
        check_where_it_launches(function, torch.tensor(1, device=device))

    @staticmethod
    def mask(
        shape: tuple[int, ...], device: str, *, p: float = 0.5, seed: int = 3
    ) -> torch.Tensor:
        """What the file says that it draws."""
        seed = torch.tensor(seed, device=device)
        return attention_dropout.keep_mask(shape, p=p, seed=seed, block_n=128)


def test_the_reference_is_philox() -> None:
    for key, counter, expected in KNOWN:
        assert [int(word) for word in philox(key, counter)] == list(expected)
