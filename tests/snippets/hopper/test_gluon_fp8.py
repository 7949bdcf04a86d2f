"""Tests of snippets/hopper/gluon_fp8.py: what holds of float8 in Triton, holds here."""

from dataclasses import replace

import pytest
import torch

from snippets.hopper import gluon_fp8
from tests.harness.inputs import GRID, normal, pairs_around
from tests.snippets.attention import test_flash2_fp8 as fp8
from tests.snippets.attention.reference import reference
from tests.snippets.attention.suite import every_shape_of_the_table
from tests.snippets.hopper.fp8 import INF, Fp8Tests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401
from verified_docs.evidence.plugin import record_accuracy

# Around the rows of one, two and three consumers; keys that come in fours, or do not.
SEVERAL = ((127, 255), (128, 256), (129, 257), (191, 47), (192, 48), (193, 49))


class TestGluonFp8(Fp8Tests):
    function = staticmethod(gluon_fp8.attention)
    causals = (False, True)
    longest = 300
    keys = (*range(1, 9), *range(129, 137))
    lengths = (*pairs_around(64, 128), *SEVERAL)

    def test_rows_that_see_nothing(self, device: str) -> None:
        for size, seq_q, seq_k in ((16, 60, 17), (128, 500, 30), (256, 500, 170)):
            inputs = fp8.make((1, 2), (1, 1), seq_q, seq_k, size, device)
            o, lse = self.judged(inputs, causal=True)
            none = seq_q - seq_k
            assert (o[:, :, :none] == 0).all()
            assert (lse[:, :, :none] == -INF).all()
            assert lse[:, :, none:].isfinite().all()

    @pytest.mark.parametrize("size", [64, 128, 256])
    @pytest.mark.parametrize("many", [4000, 20000])
    def test_long_sums_keep_their_digits(
        self, size: int, many: int, device: str
    ) -> None:
        # The tensor core adds with fewer bits than float32 has: what it adds to must
        # not grow with the number of keys. All weights are alike, all values positive:
        # PyTorch's own error is next to nothing here.
        inputs = fp8.make((1, 2), (1, 1), 3, many, size, device)
        inputs.q.zero_()
        inputs.v.copy_(inputs.v.float().abs())
        o, _ = self.found(inputs)
        expected = inputs.meant()[2].mean(dim=2, keepdim=True)
        error = ((o.double() - expected).abs() / expected).max().item()
        assert error <= 0.01

    def test_long_values_that_are_all_tiny(self, device: str) -> None:
        inputs = fp8.make((1, 1), (1, 1), 1, 4000, 16, device)
        inputs.q.zero_()
        inputs.v.fill_(448)
        inputs.v_scale.fill_(torch.finfo(torch.float32).tiny)
        o, _ = self.found(inputs)
        expected = inputs.meant()[2][:, :, :1]
        torch.testing.assert_close(o.double(), expected, rtol=0.01, atol=0)

    @pytest.mark.parametrize("seq", [1024, 16384])
    def test_error_with_that_of_the_inputs(self, seq: int, device: str) -> None:
        shape = (1, 2, seq, 128)
        exact = [normal(shape, torch.float32, device, seed=seed) for seed in range(3)]
        (q, q_scale), (k, k_scale), (v, v_scale) = map(gluon_fp8.quantise, exact)
        inputs = fp8.Inputs(q, k, fp8.padded(v), q_scale, k_scale, v_scale)
        o, _ = self.found(inputs)
        expected, _ = reference(*exact)
        rounded, _ = reference(*inputs.meant())
        error, of_inputs = ((x - expected).abs().max().item() for x in (o, rounded))
        bound = 3 * of_inputs
        record_accuracy("float8_e4m3fn", error, bound)
        assert error <= bound

    # Many tiles, many blocks.

    @pytest.mark.parametrize("columns", [64, 128, 256])
    @pytest.mark.parametrize("sizes", [(700, 3001), (330, 260), (700, 300)], ids=str)
    def test_many_tiles_and_blocks(
        self, sizes: tuple[int, int], columns: int, causal: bool, device: str
    ) -> None:
        # More tiles than places in memory, and more blocks than programs: phases go
        # round. Odd and even numbers of blocks, and causally blocks that see nothing.
        inputs = fp8.make((2, 40), (2, 10), *sizes, columns, device)
        first = self.found(inputs, causal)
        fp8.compare(first, inputs, causal)
        for _ in range(20):  # the order in which warps come changes no bit
            again = self.found(inputs, causal)
            assert all(map(torch.equal, first, again))

    @pytest.mark.parametrize("size", [64, 128])
    def test_long_causal_sequences_have_three_consumers(
        self, size: int, device: str
    ) -> None:
        for seq_q, seq_k in ((4097, 2000), (4225, 4300)):
            inputs = fp8.make((1, 2), (1, 1), seq_q, seq_k, size, device)
            self.judged(inputs, causal=True)

    @pytest.mark.parametrize("size", [64, 80, 128, 256])
    def test_grid(self, size: int, causal: bool, device: str) -> None:
        for group in GRID:
            for lengths in group:
                inputs = fp8.make((1, 2), (1, 1), *lengths, size, device)
                fp8.compare(self.found(inputs, causal), inputs, causal)

    @every_shape_of_the_table
    def test_table(
        self, shape: tuple[int, int, int, int], causal: bool, device: str
    ) -> None:
        batch, heads, seq, size = shape
        inputs = fp8.make((batch, heads), (batch, heads), seq, seq, size, device)
        fp8.compare(self.found(inputs, causal), inputs, causal)

    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, device: str) -> None:
        # A few keys count, as in the test of flash2_fp8.
        rows = 2**25 + 16
        few = [rows // 3, 2**25 - 1, 2**25, rows - 1]
        inputs = fp8.make((1, 1), (1, 1), 3, 16, 64, device)
        inputs.q[..., 0] = 448
        k, v = (
            torch.randn(shape, dtype=torch.float16, device=device).to(fp8.FLOAT8)
            for shape in ((1, 1, rows, 64), (1, 1, 64, rows))
        )
        k[..., 0], k[..., few, 0] = -448, 0
        inputs = replace(inputs, k=k, v=v, scale=10.0)
        result = self.found(inputs)
        fp8.compare(result, replace(inputs, k=k[..., few, :], v=v[..., few]))
