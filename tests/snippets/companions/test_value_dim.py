"""Tests of snippets/companions/value_dim.py."""

import pytest
import torch

from snippets.companions import value_dim
from tests.harness.inputs import HALVES, HEAD_LAYOUTS
from tests.harness.poison import guarded
from tests.harness.suite import Refusal
from tests.snippets.backward.suite import resized, strides
from tests.snippets.companions.variants import VariantTests

# head_dim and head_dim_v: one padded, one not, both in one tile or not, and equal.
WIDTHS = ((24, 16), (16, 40), (1, 3), (48, 33), (16, 16), (192, 128), (40, 256))


class TestValueDim(VariantTests):
    function = staticmethod(value_dim.attention)
    operator = "value_dim_attention"

    def values(self, head_dim: int) -> int:
        """Narrower, and in tiles of another width."""
        return max(1, head_dim * 2 // 3)

    def refusals(self) -> dict[str, Refusal]:
        """A width of v alone is none."""
        found = super().refusals()
        for width in (0, 257):
            wrong = {"v": lambda x, n=width: resized(x[..., :1], -1, n)}
            found[f"head_dim {width} of v"] = Refusal(f"v .*{width}.*; it must", wrong)
        return found

    @pytest.mark.parametrize("widths", WIDTHS, ids=str)
    def test_every_width(self, widths: tuple[int, int], device: str) -> None:
        head_dim, width = widths
        inputs = self.inputs(17, 20, device, head_dim=head_dim, width=width)
        self.check(*(guarded(x) for x in inputs), causal=True)

    @pytest.mark.parametrize("width", [3, 16, 24])
    def test_o_is_laid_out_as_q(self, width: int, device: str) -> None:
        q, k, v, *_ = self.inputs(5, 7, device, lead=(2, 4), kv_heads=2, width=width)
        for layout in ("contiguous", "seq before heads"):
            o, _ = self.function(HEAD_LAYOUTS[layout](q), k, v, **self.blocks[0])
            like = HEAD_LAYOUTS[layout](torch.empty(o.shape, device="meta"))
            assert strides(o) == strides(like)

    @pytest.mark.gpu
    def test_latent_attention(self, causal: bool, device: str) -> None:
        # The widths of DeepSeek's models, with the tiles that a call has by itself.
        for dtype in HALVES:
            options = {"head_dim": 192, "width": 128, "dtype": dtype}
            inputs = self.inputs(300, 333, device, **options)
            self.check(*inputs, causal=causal, blocks={})
