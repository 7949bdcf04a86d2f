"""Tests of snippets/companions/layer_norm.py."""

import pytest
import torch
import triton

from snippets.companions import layer_norm
from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.snippets.companions.norms import LayerNormTests, every_dtype


class TestLayerNorm(LayerNormTests):
    function = staticmethod(layer_norm.layer_norm)

    @pytest.mark.parametrize("rows", [63, 64, 65, 129])
    def test_row_counts_around_a_tile(self, rows: int, device: str) -> None:
        # 64 rows of 32 columns to a program.
        self.check_rows(guarded(normal((rows, 30), torch.float32, device)))

    @every_dtype
    def test_the_longest_row(self, dtype: torch.dtype, device: str) -> None:
        self.check_rows(normal((2, 65536), dtype, device))

    def test_refuses_a_longer_row(self, device: str) -> None:
        inputs = self.with_vectors(torch.zeros((1, 65537), device=device))
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(*inputs)


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize(
    "cols", [1, 3, 128, 129, 1000, 1024, 4096, 4097, 8192, 16384, 32768, 65536]
)
def test_a_tile_has_whole_rows_and_64_bytes_a_thread(cols: int, itemsize: int) -> None:
    block_rows, block_cols, num_warps = layer_norm.tile(cols, itemsize)
    row = block_cols
    assert row // 2 < cols <= row
    assert block_rows * row == max(2048, 2 * row if row <= 4096 else row)
    most = 32 if cols > 16384 else 16
    assert num_warps == min(most, max(4, block_rows * row * itemsize // (32 * 64)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("cols", [128, 1024, 4096, 8192, 16384])
def test_registers_hold_the_row(cols: int, dtype: torch.dtype) -> None:
    x = torch.empty((8, cols), dtype=dtype, device="cuda")
    mean = torch.empty(8, device="cuda")
    block_rows, block_cols, num_warps = layer_norm.tile(cols, dtype.itemsize)
    kernel = layer_norm.layer_norm_kernel.warmup(
        *(x, x[0], x[0], x, mean, mean, *x.stride(), 1, 1, *x.shape),
        EPS=1e-5,
        COMPUTE=triton.language.float32,
        BLOCK_ROWS=block_rows,
        BLOCK_COLS=block_cols,
        FULL=cols == block_cols,
        num_warps=num_warps,
        maxnreg=64 if cols > 4096 else None,
        grid=(1,),
    )
    kernel._init_handles()
    assert kernel.n_spills == 0
