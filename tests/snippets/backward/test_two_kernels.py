"""Tests of snippets/backward/two_kernels.py."""

import pytest
import torch
import triton.language as tl

from snippets.backward import two_kernels
from tests.harness.inputs import far_apart
from tests.snippets.backward.suite import BackwardTests


class TestTwoKernels(BackwardTests):
    function = staticmethod(two_kernels.attention_backward)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 32},
        {"block_m": 32, "block_n": 16},
        {},
    )
    causal = False
    grouped = False

    @pytest.mark.large
    def test_rows_of_lse_beyond_31_bits(self, device: str) -> None:
        # As if each of three heads had 2^30 queries; only their first tile is visited.
        q, k, v, do = self.inputs(16, 20, device, lead=(1, 3), dtype=torch.float32)
        o, lse = self.forward(q, k, v)
        far, delta = (
            far_apart((3, 16), 0, torch.float32, device).copy_(x[0])
            for x in (lse, torch.zeros_like(lse))
        )
        dq = torch.full_like(q, float("nan"))
        two_kernels.dq_kernel[(1, 3)](
            q, k, v, o, do, far, None, delta, dq,
            *(x.stride() for x in (q, k, v, o, do, dq)),
            0.25, 3, 2**30, 20, HEAD_DIM=16, BLOCK_M=16, BLOCK_N=16, BLOCK_D=16,
            INPUT_PRECISION="ieee", INDEX=tl.int32,
        )  # fmt: skip
        torch.testing.assert_close(delta, (o * do).sum(dim=-1)[0])
        expected, *_ = self.reference(q, k, v, do)
        torch.testing.assert_close(dq, expected.float())
