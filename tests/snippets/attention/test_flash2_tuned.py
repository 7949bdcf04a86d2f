"""Tests of snippets/attention/flash2_tuned.py."""

from typing import ClassVar

from snippets.attention import flash2_tuned
from tests.snippets.attention.cases import (
    AttentionTests,
)
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Tuned(AttentionTests):
    attention = staticmethod(with_blocks(flash2_tuned))
    positive_scale = True
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"input_precision": ("bf16x3", "TF32", None)}


class TestTuning(TuningTests):
    module = flash2_tuned
