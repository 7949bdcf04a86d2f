"""Tests of snippets/companions/layer_norm_loop.py."""

import pytest
import torch

from snippets.companions import layer_norm_loop
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.snippets.companions.norms import LayerNormTests


class TestLayerNormLoop(LayerNormTests):
    function = staticmethod(layer_norm_loop.layer_norm)
    blocks = ({"block_cols": 16}, {"block_cols": 64}, {"block_cols": 4}, {})
    block = 16
    units = 16  # A mean that is added up of distances from it, one tile after another.

    @pytest.mark.parametrize("place", [0, 255, 1999])
    @pytest.mark.parametrize("value", [1e4, -1e4])
    def test_one_element_far_from_the_others(
        self, place: int, value: float, device: str
    ) -> None:
        # As the first of the row it makes all distances from the first large.
        x = normal((2, 2000), torch.float32, device)
        x[0, place] = value
        ones = torch.ones(2000, device=device)
        inputs = x, ones, 0 * ones
        found = self.run(*inputs, blocks={"block_cols": 256})
        y, mean, _ = self.reference(*inputs)
        check_accuracy(found["y"], y, self.own(*inputs))
        eps = torch.finfo(torch.float32).eps
        assert ((found["mean"] - mean).abs() <= eps * 1e4).all()

    def test_a_tile_that_is_asked_for(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A block that is no power of two does not compile.
        monkeypatch.setattr(layer_norm_loop, "tile", lambda *_: (2, 100, 4))
        self.check_rows(normal((3, 100), torch.float32, device))

    @pytest.mark.parametrize("cols", [17, 31, 33, 48])
    def test_lanes_that_see_fewer_columns(self, cols: int, device: str) -> None:
        x = normal((2, cols), torch.float32, device)
        x[:, -1] += 5
        self.check_rows(x)

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
    @pytest.mark.parametrize("cols", [131072, 1048576 + 40])
    def test_long_rows(self, cols: int, dtype: torch.dtype) -> None:
        self.check_rows(normal((5, cols), dtype, "cuda"), blocks={})


# As the page says: 128 bytes of its rows for each thread, 128 KiB for 1024 of them.
@pytest.mark.parametrize(
    ("cols", "itemsize", "taken"),
    [
        (32768, 2, (1, 4096, 16)),
        (32768, 4, (1, 8192, 32)),
        (16384, 4, (1, 4096, 16)),
        (65536, 2, (1, 8192, 32)),
        (4096, 2, (2, 512, 4)),
        (8192, 2, (1, 1024, 4)),
        (100, 4, (2, 128, 4)),
        (10**6, 4, (1, 8192, 32)),
        (1, 2, (2, 1, 4)),
    ],
)
def test_what_a_program_takes(
    cols: int, itemsize: int, taken: tuple[int, int, int]
) -> None:
    assert layer_norm_loop.tile(cols, itemsize) == taken
