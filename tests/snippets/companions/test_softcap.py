"""Tests of snippets/companions/softcap.py."""

from typing import Any

import pytest
import torch

from snippets.companions import softcap
from tests.harness.inputs import INF, NAN
from tests.harness.suite import Refusal
from tests.snippets.companions.variants import Terms, VariantTests


class TestSoftcap(VariantTests):
    function = staticmethod(softcap.attention)
    operator = "softcap_attention"

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """A cap that many scores come near."""
        return {"cap": 2.0}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, cap: float
    ) -> Terms:
        """Every score is bent; the mask comes after."""
        return cap * torch.tanh(s / cap), seen, v

    def refusals(self) -> dict[str, Refusal]:
        """Of the cap as well."""
        return super().refusals() | {
            f"cap={cap}": Refusal(
                f"cap is {cap}; it must be positive", {"cap": lambda _, cap=cap: cap}
            )
            for cap in (0.0, -1.0, INF, NAN)
        }

    @pytest.mark.parametrize("cap", [0.25, 1.0, 30.0, 10000.0])
    def test_every_cap(self, cap: float, dtype: torch.dtype, device: str) -> None:
        # Far above all scores, it changes nothing, and must not cost digits either. Of
        # head_dim 16, float32 has too few roundings for their largest to be steady.
        inputs = self.inputs(19, 37, device, head_dim=64, dtype=dtype)
        self.check(*inputs, causal=True, extras={"cap": cap})

    def test_scores_of_every_size(self, dtype: torch.dtype, device: str) -> None:
        # Both forms of tanh, on both sides of 0, and where they meet.
        q, k, v, do, dlse = self.inputs(16, 64, device, dtype=dtype, lead=(1, 1))
        q.zero_()[..., 0], k.zero_()[..., 0] = 1, torch.linspace(-8, 8, 64)
        for scale in (0.3, 1.0):
            inputs = q, k, v, do, dlse
            self.check(*inputs, scale=scale, extras={"cap": 2.0})

    def test_no_score_passes_the_cap(self, causal: bool, device: str) -> None:
        # At the cap itself its slope is 0, and nothing is left of the gradient.
        q, k, v, do, dlse = self.inputs(18, 40, device)
        q, k = q.abs() + 5, k.abs() + 5
        for sign in (1, -1):
            options = {"extras": {"cap": 3.0}, "causal": causal}
            found = self.check(q, sign * k, v, do, dlse, scale=10.0, **options)
            keys = torch.arange(23, 41) if causal else torch.full((18,), 40)
            lse = sign * 3 + keys.to(device).log()
            torch.testing.assert_close(found["lse"], lse.expand_as(dlse))
            assert (found["dq"] == 0).all()
            assert (found["dk"] == 0).all()
