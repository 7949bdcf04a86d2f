"""Tests of snippets/companions/sink.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from snippets.companions import sink
from tests.harness.accuracy import Rule, check_accuracy, compare
from tests.harness.inputs import INF
from tests.snippets.companions.variants import Terms, VariantTests


class TestSink(VariantTests):
    function = staticmethod(sink.attention)
    operator = "sink_attention"
    outputs = ("o", "lse", "dq", "dk", "dv", "dsink")
    trained = ("sink",)
    given = (
        "sink",
        {
            "a sink for each key head": lambda x: x[:2],
            "sinks of a batch": lambda x: x.expand(2, 4),
            "sinks in half precision": lambda x: x.half(),
            "sinks elsewhere": lambda x: x.to("meta"),
        },
    )

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """Sinks that weigh as much as many keys, as one, and as hardly anything."""
        sinks = torch.tensor([2.0, -1.0, 0.3, 5.0], device=q.device)
        return {"sink": sinks[: q.shape[1]]}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, sink: torch.Tensor
    ) -> Terms:
        """One more score, which every row sees, and its value of 0."""
        last = sink.to(s)[:, None, None].expand(*s.shape[:3], 1)
        v = torch.cat([v, v.new_zeros(*v.shape[:2], 1, v.shape[3])], dim=2)
        everywhere = torch.ones_like(last, dtype=torch.bool)
        return torch.cat([s, last], -1), torch.cat([seen, everywhere], -1), v

    def compare(
        self,
        found: Any,
        expected: Any,
        own: Any,
        *,
        judge: Callable[..., Any] = check_accuracy,
    ) -> None:
        """The rule for a gradient holds for that of the sink as well.

        It is a sum in float32, but of o, which is rounded to the dtype of q.
        """
        each = [self.named(x) for x in (found, expected, own)]
        actual, exact, rounded = (x["dsink"] for x in each)
        dtype = each[0]["o"].dtype
        compare(actual.to(dtype), exact, rounded.to(dtype), rule=Rule(factor=3))
        super().compare(
            *({k: x for k, x in y.items() if k != "dsink"} for y in each), judge=judge
        )

    def test_a_row_that_sees_nothing_has_the_sink(self, device: str) -> None:
        inputs = self.inputs(40, 9, device, lead=(2, 4), kv_heads=2)
        sinks = self.extras(*inputs[:2])
        found = self.check(*inputs, causal=True, extras=sinks)
        lse = sinks["sink"][:, None].expand(2, 4, 31)
        torch.testing.assert_close(found["lse"][..., :31], lse)
        assert (found["o"][..., :31, :] == 0).all()

    def test_sinks_of_any_stride(self, causal: bool, device: str) -> None:
        inputs = self.inputs(18, 37, device, lead=(2, 4), kv_heads=2)
        sinks = self.extras(*inputs[:2])["sink"]
        for each in (sinks.repeat_interleave(3)[::3], sinks[:1].expand(4)):
            self.check(*inputs, causal=causal, extras={"sink": each})

    @pytest.mark.parametrize("value", [-1e4, 40.0, 1e4])
    def test_sinks_of_every_size(
        self, value: float, dtype: torch.dtype, device: str
    ) -> None:
        # One that has no weight leaves attention; one that has all of it, nothing. Of
        # head_dim 16, float32 has too few roundings for their largest to be steady.
        q, k, v, do, dlse = self.inputs(18, 37, device, head_dim=64, dtype=dtype)
        extras = {"sink": torch.full((2,), value, device=device)}
        found = self.check(q, k, v, do, dlse, causal=True, extras=extras)
        if value < 0:
            assert (found["dsink"] == 0).all()
        if value == 1e4:
            assert (found["o"] == 0).all()
            torch.testing.assert_close(found["dsink"], dlse.sum(dim=(0, 2)))

    def test_a_sink_of_minus_inf_is_none(self, causal: bool, device: str) -> None:
        q, k, v, do, dlse = self.inputs(18, 37, device)
        both = [
            self.run(q, k, v, do, dlse, causal=causal, extras={"sink": x})
            for x in (
                torch.full((2,), -INF, device=device),
                q.new_full((2,), -1e4).float(),
            )
        ]
        for name, x in both[0].items():
            torch.testing.assert_close(x, both[1][name])

    def test_the_sink_alone_is_trained(self, device: str) -> None:
        q, k, v, do, dlse = self.inputs(18, 37, device)
        leaf = self.extras(q, k)["sink"].requires_grad_()
        o, lse = self.function(q, k, v, sink=leaf, **self.blocks[0])
        (found,) = torch.autograd.grad((o, lse), leaf, (do, dlse))
        wanted = self.run(q, k, v, do, dlse, extras={"sink": leaf.detach()})["dsink"]
        assert torch.equal(found, wanted)
