"""Tests of snippets/softmax/whole_row.py."""

import pytest
import torch
import triton

from snippets.softmax import whole_row
from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.snippets.softmax.suite import SoftmaxTests, every_dtype


class TestWholeRow(SoftmaxTests):
    function = staticmethod(whole_row.softmax)

    @pytest.mark.parametrize("rows", [31, 32, 33, 65])
    def test_row_counts_around_a_tile(self, rows: int, device: str) -> None:
        x = guarded(normal((rows, 32), torch.float32, device))
        self.check(x)

    @every_dtype
    def test_the_longest_row(self, dtype: torch.dtype, device: str) -> None:
        x = normal((2, 65536), dtype, device)
        # PyTorch adds 65536 numbers one by one on some CPUs: off by 11 eps in float64.
        weights = torch.exp(x.double() - x.double().amax(dim=-1, keepdim=True))
        sums = weights.view(2, 256, 256).sum(dim=-1).sum(dim=-1, keepdim=True)
        self.compare(self.run(x), weights / sums, self.baseline(x))

    def test_refuses_a_longer_row(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(torch.zeros((1, 65537), device=device))


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("cols", [1, 3, 128, 129, 1000, 1024, 4096, 16384, 65536])
def test_a_tile_has_whole_rows_and_32_bytes_a_thread(cols: int, itemsize: int) -> None:
    block_rows, block_cols, num_warps = whole_row.tile(cols, itemsize)
    size = block_rows * block_cols * itemsize
    assert block_cols // 2 < cols <= block_cols
    assert size == max(4096, block_cols * itemsize)
    assert num_warps == min(32, size // (32 * 32))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("cols", [128, 1024, 4096, 16384, 32768])
def test_registers_hold_the_row(cols: int, dtype: torch.dtype) -> None:
    x = torch.empty((8, cols), dtype=dtype, device="cuda")
    block_rows, block_cols, num_warps = whole_row.tile(cols, x.element_size())
    kernel = whole_row.softmax_kernel.warmup(
        *(x, x, *x.stride(), *x.stride(), *x.shape),
        COMPUTE=triton.language.float32,
        BLOCK_ROWS=block_rows,
        BLOCK_COLS=block_cols,
        num_warps=num_warps,
        grid=(1,),
    )
    kernel._init_handles()
    assert kernel.n_spills == 0
