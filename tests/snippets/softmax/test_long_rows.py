"""Tests of snippets/softmax/long_rows.py."""

import pytest
import torch

from snippets.softmax import long_rows
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.harness.waiting import take_turns
from tests.snippets.softmax.suite import SoftmaxTests, baseline, reference


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a row wait for each other, on the interpreter too."""
    take_turns(monkeypatch)


class TestLongRows(SoftmaxTests):
    function = staticmethod(long_rows.softmax)
    blocks = (
        {"chunk_cols": 64, "block_cols": 16},
        {"chunk_cols": 64, "block_cols": 64},
        {"chunk_cols": 16, "block_cols": 64},
        {"chunk_cols": 256, "block_cols": 32},
        {"chunk_cols": 128},
        {"block_cols": 128},
        {},
    )

    @pytest.mark.parametrize("chunks", [1, 2, 3, 5, 33])
    def test_every_chunk_counts(self, chunks: int, device: str) -> None:
        x = normal((2, 8 * chunks - 3), torch.float32, device)
        for place in range(chunks):
            x[:, min(8 * place + 4, x.shape[1] - 1)] += place % 7
        x = guarded(x)
        y = self.function(x, chunk_cols=8, block_cols=4)
        check_accuracy(y, reference(x), baseline(x))

    def test_more_chunks_than_multiprocessors(self, device: str) -> None:
        x = normal((1, 300), torch.float32, device)
        y = self.function(x, chunk_cols=2, block_cols=64)
        check_accuracy(y, reference(x), baseline(x))

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_a_whole_chunk_of_a_special_value(self, value: float, device: str) -> None:
        x = normal((3, 200), torch.float32, device)
        x[1, 64:128] = value
        self.check(x)

    def test_no_chunk_looks_unpublished(self, device: str) -> None:
        # A maximum of 0 has bits that are all 0.
        x = torch.full((2, 200), -1.0, device=device)
        x[:, ::50] = 0.0
        self.check(x)

    def test_three_chunks_of_values_near_minus_1000(self, device: str) -> None:
        # Three chunks take four lanes: the fourth must not count as a maximum of 0.
        x = normal((2, 150), torch.float32, device) - 1000
        self.check(x)

    # As the page says: 128 bytes for each thread of a row that is one chunk.
    @pytest.mark.parametrize(
        ("chunk_cols", "chunks", "itemsize", "taken"),
        [
            (32768, 1, 2, (4096, 16, 56)),
            (32768, 1, 4, (4096, 32, 56)),
            (16384, 1, 2, (2048, 8, 56)),
            (1, 1, 2, (256, 1, 56)),
            (2**21, 1, 8, (4096, 32, 56)),
            (8192, 2, 4, (2048, 4, 96)),
            (16384, 2, 2, (2048, 4, 80)),
        ],
    )
    def test_what_a_program_takes(
        self, chunk_cols: int, chunks: int, itemsize: int, taken: tuple[int, int, int]
    ) -> None:
        assert long_rows.tile(chunk_cols, chunks, itemsize) == taken

    @pytest.mark.parametrize("cols", [32768, 32769, 40000])
    def test_one_chunk_or_more(self, cols: int, device: str) -> None:
        x = normal((2, cols), torch.float32, device)
        check_accuracy(self.function(x), reference(x), baseline(x))

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
    @pytest.mark.parametrize("cols", [131072, 1048576, 1048576 + 40, 3_000_000])
    def test_long_rows(self, cols: int, dtype: torch.dtype) -> None:
        x = torch.randn((67, cols), device="cuda").to(dtype)
        for _ in range(5):  # programs meet in another order each time
            y = self.function(x)
            sums = y.sum(dim=-1, dtype=torch.float64)
            assert ((sums - 1).abs() < 3e-3).all()
            check_accuracy(y[::33], reference(x[::33]), baseline(x[::33]))
