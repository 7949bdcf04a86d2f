"""Tests of snippets/companions/layer_norm_backward_wide.py."""

from functools import wraps
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from snippets.companions import layer_norm_backward_wide
from tests.harness.inputs import NAN, normal
from tests.snippets.companions.meetings import meet
from tests.snippets.companions.norm_gradients import NormGradientTests, Tensors


@pytest.fixture(autouse=True)
def meetings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a row meet, on the interpreter too."""
    meet(monkeypatch)


class TestLayerNormBackwardWide(NormGradientTests):
    function = staticmethod(layer_norm_backward_wide.layer_norm_backward)
    blocks = (
        {"programs": 4, "chunk_cols": 32},
        {"programs": 1, "chunk_cols": 64},
        {"programs": 3, "chunk_cols": 128},
        {"programs": 100, "chunk_cols": 16},
        {"programs": 6},
    )
    longest = None
    lengths = (1, 3, 31, 32, 33, 64, 65, 100)
    counts = (1, 2, 3, 4, 5, 9)
    rows = 7
    many = 16

    @pytest.mark.parametrize("chunks", [1, 2, 3, 5, 33])
    def test_every_chunk_counts(self, chunks: int, device: str) -> None:
        cols = 8 * chunks - 3
        x, dy = (normal((3, cols), torch.float32, device, seed=s) for s in (0, 1))
        for place in range(chunks):
            x[:, min(8 * place + 4, cols - 1)] += 3 * (place % 7)
            dy[:, min(8 * place + 2, cols - 1)] += 3 * (place % 5)
        weight = normal((cols,), torch.float32, device, seed=2)
        blocks = {"chunk_cols": 8, "programs": 2 * chunks}
        self.check_all(x, dy, weight, blocks=blocks)

    def test_more_chunks_than_multiprocessors(self, device: str) -> None:
        blocks = {"chunk_cols": 1, "programs": 1}
        self.try_shape(2, 300, torch.float32, device, blocks=blocks)

    def test_no_sums_look_unpublished(self, device: str) -> None:
        # Both sums of a chunk are 0, whose bits are all 0; or NaN, whose may be all 1.
        x, dy = (normal((6, 70), torch.float32, device, seed=s) for s in (0, 1))
        dy[0, 32:64] = 0
        dy[1] = 0
        ones = torch.tensor(-1, dtype=torch.int32).view(torch.float32)
        dy[3, 40] = ones.to(device)
        dy[4, 3] = NAN
        self.check_all(x, dy, normal((70,), torch.float32, device, seed=2))

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
    @pytest.mark.parametrize("cols", [65536, 65536 + 40, 300_000])
    def test_wide_rows(self, cols: int, dtype: torch.dtype) -> None:
        x, dy = (torch.randn((301, cols), device="cuda").to(dtype) for _ in range(2))
        weight = torch.randn(cols, device="cuda").to(dtype)
        given = self.inputs(x, dy, weight)
        first = self.check(*given, blocks={})
        for _ in range(20):  # programs meet in another order each time
            found = self.run(*given, blocks={})
            assert all(torch.equal(found[key], first[key]) for key in first)


@wraps(layer_norm_backward_wide.layer_norm_backward)
def without_mean(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor,
    **options: Any,
) -> Tensors:  # fmt: skip
    """The gradients of RMS norm."""
    return layer_norm_backward_wide.layer_norm_backward(
        dy, x, weight, None, rstd, **options
    )


class TestWithoutMean(TestLayerNormBackwardWide):
    function = staticmethod(without_mean)
    statistics = ("rstd",)
    eps = 1e-6

    def norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        return F.rms_norm(x, x.shape[1:], weight, self.eps) + bias

    def kept(self, x: torch.Tensor) -> Tensors:
        squares = x.double().square().mean(dim=1)
        return ((squares + self.eps).rsqrt().float(),)
