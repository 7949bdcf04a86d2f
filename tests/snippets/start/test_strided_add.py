"""Tests of snippets/start/strided_add.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import strided_add
from tests.harness.inputs import far_apart, normal
from tests.snippets.start.suite import AddTests


class TestStridedAdd(AddTests):
    function = staticmethod(strided_add.add)

    @given(
        size=st.integers(1, 40),
        block=st.sampled_from([1, 2, 16, 64]),
        strides=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    )
    def test_any_strides(
        self, device: str, size: int, block: int, strides: tuple[int, int]
    ) -> None:
        of_x, of_y = normal((2, 200), torch.float32, device)
        x, y = (
            of_x.as_strided((size,), strides[:1]),
            of_y.as_strided((size,), strides[1:]),
        )
        out = strided_add.add(x, y, block=block)
        assert torch.equal(out, x + y)
        assert out.is_contiguous()

    def test_reads_nothing_between_its_elements(self, device: str) -> None:
        table = torch.full((40, 7), float("nan"), device=device)
        table[:, 3] = normal((40,), torch.float32, device)
        out = strided_add.add(table[:, 3], table[:, 3], block=16)
        assert torch.equal(out, 2 * table[:, 3])

    def test_offsets_beyond_31_bits(self, device: str) -> None:
        x = far_apart((8, 1), 0, torch.float16, device)[:, 0]
        y = normal((8,), torch.float16, device)
        assert torch.equal(strided_add.add(x, y, block=4), x + y)
        assert torch.equal(strided_add.add(y, x, block=4), x + y)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self) -> None:
        table = torch.empty(2**26, 40, dtype=torch.float16, device="cuda").normal_()
        x, y = table[:, 1], table[:, 38]
        assert torch.equal(strided_add.add(x, y), x + y)
