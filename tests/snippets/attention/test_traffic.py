"""Tests of snippets/attention/traffic.py: the formulas are what the kernels do."""

import os
import subprocess
import sys
from collections import Counter
from math import ceil

import pytest
import torch

from snippets.attention import flash1, flash2_single_head, naive, traffic
from tests.harness.inputs import INTERPRETED, name, qkv
from tests.harness.traces import Traffic, counted

NO_ACCURACY = "counts of bytes: they are compared exactly"

# (seq_q, seq_k, head_dim): what the demo prints, then ragged ones.
DEMO = (traffic.SEQ, traffic.SEQ, traffic.HEAD_DIM)
SIZES = (
    (1, 1, 16),
    (40, 70, 16),
    (70, 40, 24),
    (33, 64, 40),
    (16, 16, 1),
    (5, 0, 16),
)
TILES = ((16, 16), (16, 64), (64, 16))
HALF, FULL = torch.float16, torch.float32
CASES = [
    *((DEMO, tile, HALF) for tile in traffic.TILES),
    *((sizes, tile, HALF) for sizes in SIZES for tile in TILES),
    *((sizes, (16, 32), FULL) for sizes in SIZES),
]

case = pytest.mark.parametrize(("sizes", "tile", "dtype"), CASES, ids=str)


def run_flash1(
    sizes: tuple[int, int, int],
    tile: tuple[int, int],
    dtype: torch.dtype,
    device: str,
) -> Traffic:
    """What FlashAttention-1 does, the operations of PyTorch around it included."""
    q, k, v = qkv((), (), *sizes, dtype, device)
    with counted(["o", "m", "l", "o"]) as found:
        flash1.attention(q, k, v, block_m=tile[0], block_n=tile[1])
    assert found.launches == ceil(sizes[1] / tile[1])
    return found


def run_flash2(
    sizes: tuple[int, int, int],
    tile: tuple[int, int],
    dtype: torch.dtype,
    device: str,
) -> Traffic:
    """What FlashAttention-2 does."""
    q, k, v = qkv((), (), *sizes, dtype, device)
    with counted() as found:
        flash2_single_head.attention(q, k, v, block_m=tile[0], block_n=tile[1])
    assert found.launches == 1
    return found


@pytest.mark.parametrize("dtype", [HALF, FULL], ids=name)
@pytest.mark.parametrize("sizes", [DEMO, *SIZES], ids=str)
def test_three_kernels(
    sizes: tuple[int, int, int], dtype: torch.dtype, device: str
) -> None:
    q, k, v = qkv((), (), *sizes, dtype, device)
    with counted(["s", "p", "o"], q=q, k=k, v=v) as found:
        o = traffic.three_kernels(q, k, v)
    assert found.bytes == Counter(traffic.naive_bytes(*sizes, dtype.itemsize))
    torch.testing.assert_close(o, naive.attention(q, k, v, scale=1.0))


def test_three_kernels_are_those_of_the_page_on_naive_attention() -> None:
    total = sum(traffic.naive_bytes(512, 512, 64, 2).values())
    assert total == naive.traffic(1, 1, 512, 64, 2)


class Counts:
    """What the interpreter can count: a GPU does not tell."""

    @case
    def test_flash1(
        self,
        sizes: tuple[int, int, int],
        tile: tuple[int, int],
        dtype: torch.dtype,
        device: str,
    ) -> None:
        found = run_flash1(sizes, tile, dtype, device)
        expected = traffic.flash1_bytes(*sizes, dtype.itemsize, *tile)
        assert found.bytes == Counter(expected)

    @case
    def test_flash2(
        self,
        sizes: tuple[int, int, int],
        tile: tuple[int, int],
        dtype: torch.dtype,
        device: str,
    ) -> None:
        found = run_flash2(sizes, tile, dtype, device)
        expected = traffic.flash2_bytes(*sizes, dtype.itemsize, tile[0])
        assert found.bytes == Counter(expected)

    @pytest.mark.parametrize(
        "sizes", [(64, 64, 16), (128, 64, 32), (64, 192, 64)], ids=str
    )
    @pytest.mark.parametrize("tile", TILES, ids=str)
    def test_operations(
        self, sizes: tuple[int, int, int], tile: tuple[int, int], device: str
    ) -> None:
        found = run_flash1(sizes, tile, HALF, device)
        assert found.operations == traffic.flash1_operations(*sizes, *tile)
        found = run_flash2(sizes, tile, HALF, device)
        assert found.operations == traffic.flash2_operations(*sizes, *tile)


if INTERPRETED:

    class TestCounts(Counts):
        pass

else:

    def test_counts_on_the_interpreter() -> None:
        # The same module, where no GPU is seen.
        command = ["pytest", "-q", "-p", "no:cacheprovider", "-k", "TestCounts"]
        run = subprocess.run(
            [sys.executable, "-m", *command, __file__],
            env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout
        assert " passed" in run.stdout


def test_products() -> None:
    # Each score and each component of the output is a product of two vectors.
    multiply_and_add = 2
    scores, outputs = 30 * 50, 30 * 8
    expected = multiply_and_add * (scores * 8 + outputs * 50)
    assert traffic.matmul_operations(30, 50, 8) == expected
