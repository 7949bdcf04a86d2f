"""Tests of snippets/companions/attention_dropout_backward.py."""

import functools
from typing import Any

import pytest
import torch

from snippets.companions import attention_dropout, attention_dropout_backward
from tests.harness.inputs import (
    HEAD_LAYOUTS,
    INF,
    INTERPRETED,
    STRUCTURED,
    far_apart,
    normal,
    qkv,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal
from tests.snippets.companions.attended import LEAD, SEED, Dropped, P, weights
from tests.snippets.companions.philox import halves, kept_share, kept_weights

GRADIENTS = "dq", "dk", "dv"


@functools.wraps(attention_dropout_backward.attention_backward)
def backward(q: torch.Tensor, *inputs: torch.Tensor, **options: Any) -> Any:
    """With a p and a seed, if none is given."""
    options = {"p": P, "seed": torch.tensor(SEED, device=q.device), **options}
    return attention_dropout_backward.attention_backward(q, *inputs, **options)


class TestAttentionDropoutBackward(Dropped):
    """The inputs are q, k, v, o, lse and do."""

    function = staticmethod(backward)
    outputs = GRADIENTS

    def example(self, device: str) -> Named:
        """What a forward pass has left, and a gradient."""
        names = "q", "k", "v", "o", "lse", "do"
        return dict(zip(names, self.passed(3, 5, device), strict=True))

    def passed(
        self, seq_q: int, seq_k: int, device: str, **options: Any
    ) -> tuple[torch.Tensor, ...]:
        """q, k, v, o, lse and do."""
        asked = {key: options.pop(key) for key in self.asked if key in options}
        q, k, v = self.inputs(seq_q, seq_k, device, **options)
        do = normal(q.shape, q.dtype, device, seed=9)
        return self.after(q, k, v, do, **asked)

    def after(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        **asked: Any,
    ) -> tuple[torch.Tensor, ...]:
        """q, k, v, o, lse and do: the forward pass in float64, rounded."""
        asked = {"p": P, "seed": self.seed(q.device.type), **asked}
        o, lse = weights(*(x.double() for x in (q, k, v)), **asked)
        return q, k, v, o.to(q.dtype), lse.float(), do

    def gradients(
        self, *inputs: torch.Tensor, dtype: torch.dtype, **asked: Any
    ) -> tuple[torch.Tensor, ...]:
        """Those that autograd computes in this dtype."""
        q, k, v, _, _, do = inputs
        leaves = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        o, _ = weights(*leaves, **asked)
        return torch.autograd.grad(o, leaves, do.to(dtype))

    def reference(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """In float64."""
        return self.gradients(*inputs, dtype=torch.float64, **asked)

    def baseline(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """In the dtype of q."""
        return self.gradients(*inputs, dtype=inputs[0].dtype, **asked)

    def refusals(self) -> dict[str, Refusal]:
        """Also of o, lse and do."""
        found = super().refusals()
        for tensor in ("o", "do", "lse"):
            for what, change, said in (
                ("the batch", lambda x: x[:1], r"\[1, 2, 3"),
                ("the rows", lambda x: x[:, :, :2], r"\[2, 2, 2"),
                ("the dtype", lambda x: x.half(), ".*float16"),
                ("the device", lambda x: x.to("meta"), ".*meta"),
            ):
                found[f"{what} of {tensor}"] = Refusal(
                    f"{tensor} is {said}.*; it must be ", {tensor: change}
                )
        return found

    def test_every_length(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        # In half precision: lse is rounded, which the rule for float32 hardly allows.
        dtype = torch.float16 if lengths[1] > 1 else torch.float32
        options = {"causal": causal, "lead": (1, 1), "dtype": dtype}
        inputs = self.passed(*lengths, device, **options)
        inputs = [guarded(x) for x in inputs]
        if lengths[1] > 1:
            self.check(*inputs, causal=causal)
            return
        # The weight of a single key is 1 whatever q and k are: dq = dk = 0, and the
        # bound of the rule is 0, too. dp and delta are rounded in different places.
        found = self.run(*inputs, causal=causal)
        dropped = {"p": P, "seed": self.seed(device), "causal": causal}
        *zeros, dv = self.reference(*inputs, **dropped)
        for gradient, zero in zip(("dq", "dk"), zeros, strict=True):
            assert (found[gradient] - zero).abs().max() < 1e-5
        assert (found["dv"] - dv).abs().max() < 1e-5

    def test_every_dtype(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        inputs = self.passed(19, 37, device, head_dim=24, dtype=dtype, causal=causal)
        self.check(*(guarded(x) for x in inputs), causal=causal)

    def test_the_tile_changes_nothing(self, causal: bool, device: str) -> None:
        inputs = self.passed(40, 70, device, lead=(1, 1), causal=causal)
        first, *others = (
            self.check(*inputs, causal=causal, blocks=blocks) for blocks in self.blocks
        )
        for found in others:
            for gradient in GRADIENTS:
                torch.testing.assert_close(
                    found[gradient], first[gradient], rtol=1e-5, atol=1e-5
                )

    def test_one_weight_at_a_time(self, device: str) -> None:
        # Without scores all weights are alike; do is the identity: dv is their matrix.
        q, k, v = (torch.zeros(*LEAD, 32, 32, device=device) for _ in range(3))
        do = torch.eye(32, device=device).expand_as(q)
        dv = self.run(*self.after(q, k, v, do))["dv"]
        keep = kept_weights((*LEAD, 32, 32), p=P, seed=SEED, device=device)
        expected = keep.mT / (32 * kept_share(P))
        torch.testing.assert_close(dv, expected.float(), rtol=1e-5, atol=0)

    @pytest.mark.parametrize("layout", HEAD_LAYOUTS)
    def test_every_layout(self, layout: str, device: str) -> None:
        views = list(HEAD_LAYOUTS.values())
        first = list(HEAD_LAYOUTS).index(layout)

        def view(x: torch.Tensor, step: int) -> torch.Tensor:
            return guarded(views[(first + step) % len(views)](x))

        q, k, v = self.inputs(5, 20, device, dtype=torch.float16)
        do = normal(q.shape, q.dtype, device, seed=9)
        q, k, v, do = view(q, 0), view(k, 1), view(v, 3), view(do, 5)
        q, k, v, o, lse, do = self.after(q, k, v, do)
        # o's values, whatever its layout.
        wide = o.repeat_interleave(3, dim=-1)[..., ::3]
        lse = lse.mT.contiguous().mT
        found = self.check(q, k, v, guarded(wide), guarded(lse), do)
        for gradient, x in zip(GRADIENTS, (q, k, v), strict=True):
            like = torch.empty_like(x, device="meta").stride()
            assert found[gradient].stride() == like

    def test_a_gradient_with_strides_of_0(self, device: str) -> None:
        q, k, v = self.inputs(5, 20, device)
        self.check(*self.after(q, k, v, torch.ones((), device=device).expand_as(q)))

    @pytest.mark.parametrize("p", [0.0, 0.999, 1.0])
    def test_every_p(self, p: float, dtype: torch.dtype, device: str) -> None:
        inputs = self.passed(18, 40, device, dtype=dtype, p=p, lead=(1, 2))
        found = self.check(*inputs, p=p)
        assert p < 1 or all((x == 0).all() for x in found.values())

    @pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1])
    def test_every_seed(self, seed: int, device: str) -> None:
        asked = {"seed": self.seed(device, seed)}
        self.check(*self.passed(18, 20, device, **asked), **asked)

    def test_the_number_that_is_the_threshold_stays(self, device: str) -> None:
        p = halves(SEED, (1, 3, 0, 0))[2] / 65536  # of head 0, row 3, key 10
        self.check(*self.passed(18, 20, device, p=p), p=p)

    @pytest.mark.parametrize("scale", [0.0, 0.5, -0.3])
    def test_every_scale(self, scale: float, device: str) -> None:
        self.check(*self.passed(18, 20, device, scale=scale), scale=scale)

    @pytest.mark.parametrize("head_dim", [1, 40, 80, 256])
    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        options = {"head_dim": head_dim, "dtype": torch.float16, "lead": (1, 2)}
        self.check(*(guarded(x) for x in self.passed(17, 20, device, **options)))

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, causal: bool, device: str) -> None:
        inputs = self.inputs(20, 37, device, dtype=torch.float16, lead=(1, 1))
        q, k, v = (STRUCTURED[kind](x) for x in inputs)
        # A small one: with one huge column, dk fills float16 nearly.
        do = STRUCTURED[kind](normal(q.shape, q.dtype, device, seed=9)) / 64
        self.check(*self.after(q, k, v, do, causal=causal), causal=causal)

    @pytest.mark.parametrize("hidden", [20, 41])
    def test_scores_of_minus_inf(self, hidden: int, device: str) -> None:
        # PyTorch's gradient of q is NaN there: 0 * -inf. dk and dv are what they are.
        q, k, v = self.inputs(17, 41, device, lead=(1, 1))
        q[..., 0], k[..., :hidden, 0] = 1, -INF
        inputs = self.after(q, k, v, normal(q.shape, q.dtype, device, seed=9))
        found = self.run(*inputs)
        for gradient in ("dk", "dv"):
            assert found[gradient].isfinite().all()
            assert (found[gradient][..., :hidden, :] == 0).all()

    def test_very_negative_scores(self, device: str) -> None:
        # About -200. A key that does not exist would have 0, and exp(200) overflows.
        q, k, v = self.inputs(17, 41, device, lead=(1, 1))
        q[..., 0], k[..., 0] = 20, -40
        inputs = self.after(q, k, v, normal(q.shape, q.dtype, device, seed=9))
        for gradient in self.run(*inputs).values():
            assert gradient.isfinite().all()

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
    def test_empty(self, seq_q: int, seq_k: int, causal: bool, device: str) -> None:
        inputs = self.passed(seq_q, seq_k, device, causal=causal)
        for dx, x in zip(
            self.run(*inputs, causal=causal).values(), inputs, strict=False
        ):
            assert dx.shape == x.shape
            assert (dx == 0).all()

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0)])
    def test_no_batch_or_no_heads(self, lead: tuple[int, int], device: str) -> None:
        found = self.run(*self.passed(5, 6, device, lead=lead))
        assert [x.shape[:2] for x in found.values()] == 3 * [lead]

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(40, 9), (40, 24)])
    def test_rows_that_see_nothing(
        self, seq_q: int, seq_k: int, dtype: torch.dtype, device: str
    ) -> None:
        options = {"dtype": dtype, "lead": (1, 1)}
        inputs = self.passed(seq_q, seq_k, device, causal=True, **options)
        dq, dk, dv = self.check(*inputs, causal=True).values()
        assert (dq[..., : seq_q - seq_k, :] == 0).all()
        assert dk.isfinite().all()
        assert dv.isfinite().all()

    def test_it_undoes_the_forward_pass(self, causal: bool, device: str) -> None:
        # Both files together, each with tiles of its own.
        q, k, v = self.inputs(20, 36, device, lead=(1, 2))
        do = normal(q.shape, q.dtype, device, seed=9)
        dropped = {"p": P, "seed": self.seed(device), "causal": causal}
        o, lse = attention_dropout.attention(q, k, v, **dropped, block_m=32, block_n=64)
        inputs = q, k, v, o, lse, do
        found = self.run(*inputs, **dropped)
        expected = self.reference(*inputs, **dropped)
        self.compare(found, expected, self.baseline(*inputs, **dropped))

    def test_a_seed_on_one_side_only(self, device: str) -> None:
        # What goes wrong when the passes have two seeds: not a little.
        inputs = self.passed(18, 40, device, lead=(1, 1))
        right = self.run(*inputs)
        wrong = self.run(*inputs, seed=self.seed(device, SEED + 1))
        for gradient, x in right.items():
            assert (wrong[gradient] - x).norm() > 0.2 * x.norm()

    def test_the_same_bits_again(self, device: str) -> None:
        inputs = self.passed(20, 36, device, lead=(1, 1))
        first = self.run(*inputs)
        for _ in range(1 if INTERPRETED else 100):
            assert all(torch.equal(x, first[y]) for y, x in self.run(*inputs).items())

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        for axis in range(4):
            q, k, v, do = (
                far_apart((3, 3, 3, 3), axis, torch.float16, device, seed=seed)
                for seed in range(4)
            )
            self.check(*self.after(q, k, v, do))

    @pytest.mark.gpu
    @pytest.mark.parametrize("head_dim", [64, 128])
    @pytest.mark.parametrize("seq_q", [500, 512])
    def test_many_rows(
        self, seq_q: int, head_dim: int, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        q, k, v = qkv((2, 3), (2, 3), seq_q, 512, head_dim, dtype, device)
        do = normal(q.shape, dtype, device, seed=9)
        inputs = self.after(q, k, v, do, causal=causal)
        self.check(*inputs, causal=causal, blocks={})
