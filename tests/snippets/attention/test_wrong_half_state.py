"""Tests of snippets/attention/wrong_half_state.py: its error grows with the keys."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from snippets.attention import wrong_half_state
from tests.harness import accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import baseline, reference

HALF, FULL = torch.float16, torch.float32


def check(
    seq_k: int,
    dtype: torch.dtype,
    device: str,
    judge: Callable[..., Any] = accuracy.check_accuracy,
) -> None:
    """The rule of accuracy, for outputs from 1 to 2 after seq_k / 16 launches."""
    q, k, v = qkv((), (), 16, seq_k, 16, dtype, device)
    v = v.abs().clamp(1, 2)
    o = wrong_half_state.attention(q, k, v, block_m=16, block_n=16)
    judge(o, reference(q, k, v)[0], baseline(q, k, v)[0])


def test_few_keys_do_not_show_it(device: str) -> None:
    check(16, HALF, device)


def test_many_keys_show_it(device: str) -> None:
    with pytest.raises(AssertionError, match="above the bound"):
        check(1008, HALF, device, accuracy.compare)


def test_it_is_right_in_float32(device: str) -> None:
    check(112, FULL, device)
