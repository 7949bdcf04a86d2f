"""Tests of snippets/companions/rms_norm_backward.py."""

import torch
import torch.nn.functional as F

from snippets.companions import rms_norm_backward
from tests.snippets.companions.norm_gradients import NormGradientTests, Tensors


class TestRMSNormBackward(NormGradientTests):
    function = staticmethod(rms_norm_backward.rms_norm_backward)
    outputs = ("dx", "dw")
    statistics = ("rstd",)
    eps = 1e-6
    blocks = ({"programs": 2}, {"programs": 1}, {"programs": 7}, {"programs": 100})

    def norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        return F.rms_norm(x, x.shape[1:], weight, self.eps)

    def kept(self, x: torch.Tensor) -> Tensors:
        squares = x.double().square().mean(dim=1)
        return ((squares + self.eps).rsqrt().float(),)
