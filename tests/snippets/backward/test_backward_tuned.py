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

    def test_scores_far_below_zero(self, causal: bool, device: str) -> None:
        super().test_scores_far_below_zero(causal, device)
        # 48 keys fill the tiles of dk and dv, and not those of dq.
        q, k, v, do = self.inputs(18, 48, device)
        q, k, blocks = q.abs() + 5, -k.abs() - 5, self.blocks[1]
        self.check(q, k, v, do, causal=causal, scale=1.0, blocks=blocks)
