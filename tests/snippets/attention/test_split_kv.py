"""Tests of snippets/attention/split_kv.py."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch

from snippets.attention import split_kv
from tests.snippets.attention.cases import AttentionTests


class TestSplitKv(AttentionTests):
    attention = staticmethod(split_kv.attention)
    blocks = (
        {"splits": 3, "block_n": 16},
        {"splits": 1, "block_n": 32},
        {"splits": 8, "block_n": 64},
        {"splits": 40, "block_n": 16},
        {},
    )
    refused: ClassVar = {
        "input_precision": ("bf16x3", "TF32", None),
        "splits": (0, -1, 257, 1.5),
        "seq_lens": (),
    }
