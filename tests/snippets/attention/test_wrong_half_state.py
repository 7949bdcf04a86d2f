"""Tests of snippets/attention/wrong_half_state.py: its error grows with the keys."""

from collections.abc import Callable

import pytest
import torch

from snippets.attention import wrong_half_state
from tests.harness import accuracy
from tests.snippets.attention.cases import baseline, qkv, reference

HALF, FULL = torch.float16, torch.float32


def compared(
    seq_k: int, dtype: torch.dtype, device: str, compare: Callable
) -> accuracy.Accuracy:
    """The rule of accuracy, for outputs from 1 to 2 after seq_k / 16 launches."""
    q, k, v = qkv((), (), 16, seq_k, 16, dtype, device)
    v = v.abs().clamp(1, 2)
    o = wrong_half_state.attention(q, k, v, block_m=16, block_n=16)
    return compare(o, reference(q, k, v)[0], baseline(q, k, v)[0])


def test_few_keys_do_not_show_it(device: str, check_accuracy: Callable) -> None:
    compared(16, HALF, device, check_accuracy)


def test_many_keys_show_it(device: str) -> None:
    with pytest.raises(AssertionError, match="above the bound"):
        compared(1000, HALF, device, accuracy.compare)


def test_it_is_right_in_float32(device: str, check_accuracy: Callable) -> None:
    compared(100, FULL, device, check_accuracy)
