"""Tests of snippets/backward/two_kernels.py."""

from snippets.backward import two_kernels
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
