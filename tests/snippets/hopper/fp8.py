"""The suite of attention on float8 in Gluon."""

import math
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch

from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.snippets.attention import test_flash2_fp8 as fp8
from tests.snippets.attention.reference import reference
from tests.snippets.hopper.gluon import OnGpu

INF = float("inf")
NAN = float("nan")
HEAD_DIMS = (16, 32, 48, 64, 80, 96, 128, 144, 160, 192, 208, 256)


class Fp8Tests(OnGpu, fp8.TestRefusals):
    """What holds of a kernel on float8, whatever the number of tiles.

    Attributes:
        causals: whether to try a mask.
        lengths: of queries and keys.
        keys: lengths that come in fours, or do not.
        longest: keys at most.
    """

    blocks = ({},)
    causals: ClassVar[tuple[bool, ...]] = (False,)
    lengths: ClassVar[tuple[tuple[int, int], ...]]
    keys: ClassVar[tuple[int, ...]]
    longest: ClassVar[int]

    def cases(self) -> dict[str, Any]:
        """Lengths, masks and head dimensions."""
        return super().cases() | {
            "causal": self.causals,
            "lengths": self.lengths,
            "seq_k": self.keys,
            "head_dim": HEAD_DIMS,
        }

    def found(
        self, inputs: fp8.Inputs, causal: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What the kernel returns."""
        return self.function(
            **inputs.arguments(), **({"causal": True} if causal else {})
        )

    def judged(
        self, inputs: fp8.Inputs, causal: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the kernel, NaN around its inputs, and hold its results to the rule."""
        around = {
            name: guarded(x)
            for name, x in vars(inputs).items()
            if isinstance(x, torch.Tensor)
        }
        result = self.found(replace(inputs, **around), causal)
        fp8.compare(result, inputs, causal)
        return result

    def test_every_length(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        for head_dim in (16, 144):
            self.judged(fp8.make((1, 2), (1, 1), *lengths, head_dim, device), causal)

    def test_keys_that_do_not_come_in_fours(
        self, seq_k: int, causal: bool, device: str
    ) -> None:
        inputs = fp8.make((2, 4), (2, 2), 70, seq_k, 48, device)
        wide = inputs.k.new_empty((2, 2, seq_k + 5, 48))
        wide.view(torch.uint8).fill_(0x7F)  # NaN, behind the keys of each head
        inputs = replace(inputs, k=wide[:, :, :seq_k].copy_(inputs.k))
        fp8.compare(self.found(inputs, causal), inputs, causal)

    def test_every_head_dim(self, head_dim: int, causal: bool, device: str) -> None:
        for seq_k in {100, self.longest}:
            inputs = fp8.make((1, 2), (1, 1), 70, seq_k, head_dim, device)
            self.judged(inputs, causal)

    @pytest.mark.parametrize("kv_heads", [8, 2, 1])
    def test_heads_that_share_keys(
        self, kv_heads: int, causal: bool, device: str
    ) -> None:
        for size in (16, 256):
            inputs = fp8.make((2, 8), (2, kv_heads), 5, 40, size, device)
            self.judged(inputs, causal)

    @pytest.mark.parametrize("scale", [0.1, math.log(4)])
    def test_every_scale(self, scale: float, device: str) -> None:
        inputs = fp8.make((1, 2), (1, 1), 18, 40, 16, device)
        self.judged(replace(inputs, scale=scale))

    def test_each_query_finds_its_own_key(self, device: str) -> None:
        # Query i looks at key i alone. If the values were not in the order of the keys,
        # another one would come out.
        for size in (64, 128, 256):
            k, v = (
                normal((1, 2, self.longest, size), torch.float32, device, seed=seed)
                for seed in range(2)
            )
            k, v = k.sign().to(fp8.FLOAT8), v.to(fp8.FLOAT8)
            ones = torch.ones((1, 2), device=device)
            inputs = fp8.Inputs(k, k, fp8.padded(v), ones, ones, ones, scale=4.0)
            o, _ = self.judged(inputs)
            assert torch.equal(o.float(), v.float())

    def test_every_factor_is_of_its_own_head(self, device: str) -> None:
        inputs = fp8.make((2, 4), (2, 2), 5, 40, 16, device)
        for name in ("q_scale", "k_scale", "v_scale"):
            factors = getattr(inputs, name).clone()
            factors[1, 1] *= 2
            apart = factors.repeat_interleave(2, dim=1)[:, ::2]
            self.judged(replace(inputs, **{name: apart}))

    def test_no_two_strides_alike(self, device: str) -> None:
        for seq_k in (40, 41):
            inputs = fp8.make((2, 4), (2, 2), 5, seq_k, 16, device)
            apart = {}
            for at, name in enumerate("qkv"):
                x = getattr(inputs, name)
                *lead, rows, cols = x.shape
                wide = torch.empty((rows, *lead, cols + 16 * (at + 1) + -cols % 16))
                wide = wide.to(fp8.FLOAT8).to(device)[..., :cols].permute(1, 2, 0, 3)
                apart[name] = wide.copy_(x)
            self.judged(replace(inputs, **apart))

    def test_layouts_of_keys(self, device: str) -> None:
        # Batches and heads that are evenly apart, so that K is not copied, or are not.
        inputs = fp8.make((2, 4), (2, 2), 70, 100, 64, device)
        for turned in (
            lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
            lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
            lambda x: x.repeat_interleave(2, dim=2)[:, :, ::2],
            lambda x: x[:, :1].expand(x.shape),
        ):
            other = replace(inputs, k=turned(inputs.k))
            fp8.compare(self.found(other), other)

    def test_expanded_keys(self, device: str) -> None:
        for seq_k in (101, 104):
            inputs = fp8.make((2, 4), (1, 1), 70, seq_k, 64, device)
            for name in ("k", "v", "k_scale", "v_scale"):
                x = getattr(inputs, name)
                inputs = replace(inputs, **{name: x.expand(2, 2, *x.shape[2:])})
            fp8.compare(self.found(inputs), inputs)

    def test_small_weights_count(self, device: str) -> None:
        # As in the test of flash2_fp8: without a factor, a weight of 2^-12 is 0.
        inputs = fp8.make((1, 1), (1, 1), 3, 91, 16, device, powers=True)
        inputs.q.fill_(0)
        inputs.k.fill_(0)
        inputs.v.fill_(1)
        inputs.q[..., 0], inputs.k[..., 50, 0], inputs.v[..., 50] = 1, 12, 0
        o, _ = self.judged(inputs)
        assert (o > 0).all()

    @pytest.mark.parametrize(("seq_q", "none"), [(0, 5), (5, 0), (0, 0)])
    @pytest.mark.parametrize("lead", [(1, 2), (0, 2), (2, 0)])
    def test_empty(
        self, seq_q: int, none: int, lead: tuple[int, int], device: str
    ) -> None:
        inputs = fp8.make((2, 2), (2, 2), 5, 5, 16, device)
        batch, heads = (slice(n) for n in lead)
        cut = {
            name: x[batch, heads] for name, x in vars(inputs).items() if x is not None
        }
        cut["q"], cut["k"] = cut["q"][:, :, :seq_q], cut["k"][:, :, :none]
        cut["v"] = cut["v"][..., :none]
        cut = {n: x.contiguous() if n.endswith("scale") else x for n, x in cut.items()}
        o, lse = self.function(**cut)
        assert (o.shape, lse.shape) == ((*lead, seq_q, 16), (*lead, seq_q))
        assert (o == 0).all()
        assert (lse == -INF).all()

    @pytest.mark.parametrize("factor", [0.0, 1e-22, 1e-30])
    def test_scores_that_are_all_0(self, factor: float, device: str) -> None:
        x = normal((3, 1, 1, 64, 32), torch.float32, device)
        q, k, v = x[0] * factor, x[1] * factor, x[2].mT.contiguous()
        quantised = map(fp8.flash2_fp8.quantise, (q, k, v))
        (q, q_scale), (k, k_scale), (v, v_scale) = quantised
        o, lse = self.function(q, k, v, q_scale, k_scale, v_scale)
        mean = (v.float() * v_scale[..., None, None]).mT.mean(2, keepdim=True)
        torch.testing.assert_close(
            o.float(), mean.expand_as(o), rtol=2**-7, atol=2**-14
        )
        torch.testing.assert_close(lse, torch.full_like(lse, math.log(64)))

    def test_values_that_are_all_tiny(self, device: str) -> None:
        # Their factor is the smallest normal number: divided by anything, it loses
        # digits.
        inputs = fp8.make((1, 1), (1, 1), 1, self.longest, 16, device)
        inputs.q.zero_()
        inputs.v.fill_(448)
        inputs.v_scale.fill_(torch.finfo(torch.float32).tiny)
        o, _ = self.found(inputs)
        expected = inputs.meant()[2][:, :, :1]
        torch.testing.assert_close(o.double(), expected, rtol=0.01, atol=0)

    def test_huge_scores(self, causal: bool, device: str) -> None:
        # All alike, so each key has the same weight, rounded to a float8.
        inputs = fp8.make((1, 2), (1, 1), 100, 100, 80, device)
        for x in (inputs.q, inputs.k, inputs.v):
            x.fill_(448)
        for scale in (inputs.q_scale, inputs.k_scale):
            scale.fill_(2)  # scores of 7.2e6, below 2^23
        inputs.v_scale.fill_(1 / 448)
        o, lse = self.found(inputs, causal)
        assert ((o.float() - 1).abs() <= 2**-4).all()
        q, k, v = inputs.meant()
        expected = reference(q, k.repeat_interleave(2, 1), v, causal=causal)[1]
        torch.testing.assert_close(lse.double(), expected, rtol=1e-5, atol=0)

    def test_nan(self, causal: bool, device: str) -> None:
        for name, at in (("q", (0, 1, 7, 3)), ("k", (0, 0, 20, 3))):
            inputs = fp8.make((1, 2), (1, 1), 40, 40, 16, device)
            getattr(inputs, name)[at] = NAN
            self.judged(inputs, causal)
