"""Tests of snippets/companions/prefix_mask.py."""

from typing import Any

import pytest
import torch

from snippets.companions import prefix_mask
from tests.snippets.companions.variants import Terms, VariantTests


class TestPrefixMask(VariantTests):
    function = staticmethod(prefix_mask.attention)
    operator = "prefix_attention"
    given = (
        "prefix",
        {
            "a prefix for all": lambda x: x[:1],
            "a prefix that is a number": lambda x: x[0],
            "a prefix for each head": lambda x: x[:, None].expand(2, 4),
            "a prefix in 64 bits": lambda x: x.long(),
            "a prefix elsewhere": lambda x: x.to("meta"),
        },
    )

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """Some keys of the second tile; for another batch entry a few of the first."""
        prefix = torch.tensor([18, 3, 1], device=q.device, dtype=torch.int32)
        return {"prefix": prefix.repeat(len(q) // 3 + 1)[: len(q)]}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, prefix: torch.Tensor
    ) -> Terms:
        """Keys of the prefix are seen, whatever the causal mask says."""
        keys = torch.arange(s.shape[-1], device=s.device)
        return s, seen | (keys < prefix[:, None, None, None]), v

    def test_rows_that_see_nothing(self, device: str) -> None:
        """Without a prefix, and queries above the first key."""
        inputs = self.inputs(40, 9, device, lead=(2, 2))
        extras = {"prefix": torch.tensor([0, 2], dtype=torch.int32, device=device)}
        found = self.check(*inputs, causal=True, extras=extras)
        assert (found["o"][0, :, :31] == 0).all()
        assert (found["dq"][0, :, :31] == 0).all()
        assert (found["o"][1] != 0).all()

    @pytest.mark.parametrize("prefix", [-5, 0, 1, 15, 16, 17, 33, 36, 37, 1000])
    def test_every_prefix(self, prefix: int, device: str) -> None:
        # Before, at and behind the edges of tiles, none at all, and all keys.
        inputs = self.inputs(20, 37, device, lead=(2, 2))
        for each in ([prefix, 0], [2, prefix]):
            extras = {"prefix": torch.tensor(each, dtype=torch.int32, device=device)}
            self.check(*inputs, causal=True, extras=extras)

    @pytest.mark.parametrize("lengths", [(50, 50), (50, 20), (5, 70)], ids=str)
    def test_long_prefixes(self, lengths: tuple[int, int], device: str) -> None:
        # The first queries see tiles far beyond their diagonal, if keys follow there.
        inputs = self.inputs(*lengths, device)
        for prefix in (lengths[1] - 3, lengths[1] // 2):
            each = torch.tensor([prefix], dtype=torch.int32, device=device)
            self.check(*inputs, causal=True, extras={"prefix": each})

    def test_a_prefix_of_all_keys_is_no_mask(self, device: str) -> None:
        q, k, v, *_ = self.inputs(20, 37, device)
        prefix = torch.tensor([37], dtype=torch.int32, device=device)
        found, wanted = (
            self.function(q, k, v, prefix=each, causal=causal, **self.blocks[0])
            for each, causal in ((prefix, True), (prefix * 0, False))
        )
        assert torch.equal(found[0], wanted[0])
        default = self.function(q, k, v, prefix=prefix * 0, **self.blocks[0])
        assert not torch.equal(default[0], wanted[0])

    def test_prefixes_of_any_stride(self, device: str) -> None:
        inputs = self.inputs(20, 37, device, lead=(2, 2))
        prefix = torch.tensor([[20, 1], [5, 2]], dtype=torch.int32, device=device)
        for each in (prefix[:, 0], prefix[0, :1].expand(2)):
            self.check(*inputs, causal=True, extras={"prefix": each})
