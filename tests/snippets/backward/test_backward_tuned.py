"""Tests of snippets/backward/backward_tuned.py."""

import torch

from snippets.backward import backward_tuned
from tests.harness.inputs import HALVES
from tests.snippets.backward.suite import BackwardTests


class TestBackwardTuned(BackwardTests):
    function = staticmethod(backward_tuned.attention_backward)
    blocks = (
        {"tiles": {"dq": (16, 16, 4, 1), "dkdv": (16, 16, 4, 1)}},
        {"tiles": {"dq": (16, 32, 4, 1), "dkdv": (32, 16, 4, 1)}},
        {"tiles": {"dq": (32, 16, 4, 1), "dkdv": (16, 32, 4, 1)}},
        {},
    )
    copies = True
    dtypes = HALVES
    interpreted = (torch.float16,)
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)
    most_heads = None
    bad_head_dims = (0, 12, 264)
