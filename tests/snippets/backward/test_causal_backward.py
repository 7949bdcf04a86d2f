"""Tests of snippets/backward/causal_backward.py."""

from snippets.backward import causal_backward
from tests.snippets.backward.suite import BackwardTests


class TestCausalBackward(BackwardTests):
    function = staticmethod(causal_backward.attention_backward)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 32},
        {"block_m": 32, "block_n": 16},
        {},
    )
