"""Tests of snippets/companions/rms_norm_loop.py."""

import pytest
import torch

from snippets.companions import rms_norm_loop
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import LAYOUTS, normal
from tests.harness.poison import guarded
from tests.snippets.companions.norms import RmsNormTests, every_dtype


class TestRmsNormLoop(RmsNormTests):
    function = staticmethod(rms_norm_loop.rms_norm)
    blocks = ({"block_cols": 16}, {"block_cols": 64}, {"block_cols": 4}, {})
    block = 16

    @pytest.mark.parametrize("place", [0, 255, 1999])
    @pytest.mark.parametrize("value", [1e4, -1e4])
    def test_one_element_far_from_the_others(
        self, place: int, value: float, device: str
    ) -> None:
        x = normal((2, 2000), torch.float32, device)
        x[0, place] = value
        self.check(x, torch.ones(2000, device=device), blocks={"block_cols": 256})

    @pytest.mark.parametrize("terms", [2, 100, 500])
    def test_many_terms_in_a_lane(
        self, terms: int, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # In a row of equal numbers every addition of a sum is rounded the same way.
        monkeypatch.setattr(rms_norm_loop, "tile", lambda *_: (16, 4, 4))
        x = normal((16, 1), torch.float32, device).repeat(1, 4 * terms)
        self.check_rows(x, blocks={})

    def test_squares_beyond_the_largest_number(self, device: str) -> None:
        # Their sum is infinite, and the row 0, as PyTorch has it.
        x = normal((3, 100), torch.float32, device)
        x[1] += 1e19
        x[1, 50] = 1e20
        inputs = self.with_vectors(x)
        found = self.run(*inputs)
        assert (found["rstd"][1] == 0) & (found["y"][1] == 0).all()
        assert (self.own(*inputs)[1] == 0).all()
        assert (found["rstd"][::2] > 0.5).all()

    def test_a_row_of_zeros(self, device: str) -> None:
        x = normal((3, 50), torch.float32, device)
        x[1] = 0
        found = self.check_rows(x)
        assert (found["y"][1] == 0).all()
        torch.testing.assert_close(found["rstd"][1].item(), 1000.0)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_layout_of_wide_rows(self, layout: str, device: str) -> None:
        x = LAYOUTS[layout](normal((2, 70000), torch.float32, device))
        self.check_rows(guarded(x), blocks={})

    def test_a_tile_that_is_asked_for(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A block that is no power of two does not compile.
        monkeypatch.setattr(rms_norm_loop, "tile", lambda *_: (2, 100, 4))
        self.check_rows(normal((3, 100), torch.float32, device))

    @pytest.mark.parametrize("cols", [17, 31, 33, 48])
    def test_lanes_that_see_fewer_columns(self, cols: int, device: str) -> None:
        x = normal((2, cols), torch.float32, device)
        x[:, -1] += 5
        self.check_rows(x)

    @every_dtype
    @pytest.mark.parametrize("cols", [65535, 65536, 65537, 100000])
    def test_rows_that_no_program_holds(
        self, cols: int, dtype: torch.dtype, device: str
    ) -> None:
        self.check_rows(guarded(normal((2, cols), dtype, device)), blocks={})

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
    @pytest.mark.parametrize("cols", [131072, 1048576 + 40])
    def test_long_rows(self, cols: int, dtype: torch.dtype) -> None:
        self.check_rows(normal((5, cols), dtype, "cuda"), blocks={})

    @pytest.mark.gpu
    @pytest.mark.large
    def test_a_row_of_more_than_31_bits(self) -> None:
        cols = 2**31 + 100
        x = torch.empty((1, cols), dtype=torch.bfloat16, device="cuda").normal_()
        found = self.run(x, x.new_full((1,), 3.0).expand(cols), blocks={})
        squares = [part.double().square().sum() for part in x[0].split(2**24)]
        rstd = (torch.stack(squares).sum() / cols + 1e-6).rsqrt()
        for some in (slice(100), slice(2**30, 2**30 + 100), slice(2**31 - 50, None)):
            expected = x[:, some].double() * rstd * 3
            check_accuracy(found["y"][:, some], expected, expected.bfloat16())
        torch.testing.assert_close(
            found["rstd"].double(), rstd[None], rtol=5e-7, atol=0
        )


# As of layer norm: 128 bytes of its rows for each thread, 128 KiB for 1024 of them.
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
    assert rms_norm_loop.tile(cols, itemsize) == taken
