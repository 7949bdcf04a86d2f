"""Tests of snippets/companions/rms_norm.py."""

import pytest
import torch

from snippets.companions import rms_norm
from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.snippets.companions.norms import RmsNormTests, every_dtype


class TestRmsNorm(RmsNormTests):
    function = staticmethod(rms_norm.rms_norm)

    @pytest.mark.parametrize("rows", [31, 32, 33, 65])
    def test_row_counts_around_a_tile(self, rows: int, device: str) -> None:
        # 32 rows of 32 columns to a program.
        self.check_rows(guarded(normal((rows, 30), torch.float32, device)))

    @every_dtype
    def test_the_longest_row(self, dtype: torch.dtype, device: str) -> None:
        self.check_rows(normal((2, 65536), dtype, device))

    def test_refuses_a_longer_row(self, device: str) -> None:
        inputs = self.with_vectors(torch.zeros((1, 65537), device=device))
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(*inputs)

    def test_a_row_of_zeros(self, device: str) -> None:
        x = normal((3, 50), torch.float32, device)
        x[1] = 0
        found = self.check_rows(x)
        assert (found["y"][1] == 0).all()
        torch.testing.assert_close(found["rstd"][1].item(), 1000.0)

    def test_a_shift_is_no_matter_of_indifference(self, device: str) -> None:
        # Layer norm would take the mean away.
        x = normal((3, 50), torch.float32, device) + 10
        y = self.check_rows(x)["y"]
        weight = self.with_vectors(x)[1]
        assert ((y / weight).mean(dim=1) > 0.9).all()


@pytest.mark.parametrize("itemsize", [2, 4, 8])
@pytest.mark.parametrize("cols", [1, 3, 128, 129, 1000, 1024, 4096, 16384, 65536])
def test_a_tile_has_whole_rows_and_32_bytes_a_thread(cols: int, itemsize: int) -> None:
    block_rows, block_cols, num_warps = rms_norm.tile(cols, itemsize)
    row = block_cols * itemsize
    assert block_cols // 2 < cols <= block_cols
    assert block_rows * row == max(4096, 2 * row if row <= 16384 else row)
    assert num_warps == min(32, block_rows * row // (32 * 32))
