"""Tests of snippets/companions/alibi.py."""

from typing import Any

import torch

from snippets.companions import alibi
from tests.snippets.companions.variants import Terms, VariantTests


class TestAlibi(VariantTests):
    function = staticmethod(alibi.attention)
    operator = "alibi_attention"
    given = (
        "slopes",
        {
            "a slope for each key head": lambda x: x[:2],
            "slopes of a batch": lambda x: x.expand(2, 4),
            "slopes in half precision": lambda x: x.half(),
            "slopes elsewhere": lambda x: x.to("meta"),
            "slopes with a gradient": lambda x: x.detach().requires_grad_(),
        },
    )

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """Slopes that differ from head to head, one of them negative."""
        slopes = torch.tensor([0.5, 0.03, -0.02, 0.1])
        return {"slopes": slopes[: q.shape[1]].to(q.device)}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor
    ) -> Terms:
        """The distance counts from the key that stands beside the query."""
        seq_q, seq_k = s.shape[-2:]
        rows = torch.arange(seq_q, device=s.device)[:, None] + seq_k - seq_q
        distance = (rows - torch.arange(seq_k, device=s.device)).abs()
        return s - slopes.to(s)[:, None, None] * distance.to(s), seen, v

    def test_slopes_of_any_stride(self, causal: bool, device: str) -> None:
        inputs = self.inputs(18, 37, device, lead=(2, 4), kv_heads=2)
        slopes = self.extras(*inputs[:2])["slopes"]
        for each in (slopes.repeat_interleave(3)[::3], slopes[:1].expand(4)):
            self.check(*inputs, causal=causal, extras={"slopes": each})

    def test_a_steep_slope_leaves_the_nearest_key(self, device: str) -> None:
        # Query i stands beside key i + 5: of all keys, it sees that alone.
        q, k, v, do, dlse = self.inputs(20, 25, device)
        extras = {"slopes": torch.full((2,), 1e4, device=device)}
        found = self.run(q, k, v, do, dlse, extras=extras)
        assert torch.equal(found["o"], v[:, :, 5:].expand_as(q))

    def test_with_gradients_off_slopes_may_be_a_parameter(self, device: str) -> None:
        q, k, v, *_ = self.inputs(3, 5, device)
        slopes = self.extras(q, k)["slopes"].requires_grad_()
        with torch.no_grad():
            o, _ = self.function(q, k, v, slopes=slopes, **self.blocks[0])
        assert not o.requires_grad
