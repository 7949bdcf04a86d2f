"""Tests of snippets/companions/layer_norm_backward.py."""

from snippets.companions import layer_norm_backward
from tests.snippets.companions.norm_gradients import NormGradientTests


class TestLayerNormBackward(NormGradientTests):
    function = staticmethod(layer_norm_backward.layer_norm_backward)
    blocks = ({"programs": 2}, {"programs": 1}, {"programs": 7}, {"programs": 100})
