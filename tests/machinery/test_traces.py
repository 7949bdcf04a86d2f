"""The counter of bytes and operations, on kernels small enough to count by hand."""

from collections import Counter

import pytest
import torch
import triton
import triton.language as tl

from tests.harness.traces import counted

if not triton.knobs.runtime.interpret:
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)


@triton.jit
def scale_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    y = tl.exp(x - tl.max(x, axis=0)) / tl.sum(x, axis=0)
    tl.store(y_ptr + offs, tl.fma(y, x, x), mask=offs < n)


def test_masked_lanes_move_nothing_and_calculate_all_the_same():
    x, y = torch.randn(10).half(), torch.zeros(10)
    with counted() as found:
        for _ in range(3):
            scale_rows[(1,)](x, y, 10, BLOCK=16)
    assert found.launches == 3
    assert found.bytes == Counter({"load x": 3 * 10 * 2, "store y": 3 * 10 * 4})
    # A maximum, a difference, an exponential, a sum, a quotient; two in one.
    assert found.operations == 3 * 16 * (5 + 2)


def test_operations_of_pytorch_read_and_write():
    x = torch.randn(4, 6)
    with counted(["y", "z", "half"], x=x) as found:
        y = x.T @ x
        torch.zeros(5, dtype=torch.float16)
        y[:2].half()
    moved = {"load x": 2 * 96, "store y": 144, "store z": 10}
    moved |= {"load y": 48, "store half": 24}
    assert found.bytes == Counter(moved)
