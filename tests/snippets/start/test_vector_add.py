"""Tests of snippets/start/vector_add.py."""

from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.start import vector_add
from tests.harness.inputs import normal
from tests.snippets.start.suite import AddTests


class TestVectorAdd(AddTests):
    function = staticmethod(vector_add.add)
    refused: ClassVar = [
        (lambda x: (x[::2], x[:2]), "x has stride 2"),
        (lambda x: (x[:2], x[:1].expand(2)), "y has stride 0"),
    ]

    @given(
        size=st.integers(1, 70),
        block=st.sampled_from([1, 2, 16, 64, 1024]),
        offset=st.integers(0, 5),
    )
    def test_any_block_and_start(
        self, device: str, size: int, block: int, offset: int
    ) -> None:
        storage = normal((100,), torch.float32, device)
        x, y = storage[:size], storage[offset : offset + size]
        assert torch.equal(vector_add.add(x, y, block=block), x + y)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self) -> None:
        x = torch.empty(2**31 + 5, dtype=torch.float16, device="cuda").normal_()
        out = vector_add.add(x, x)
        for some in (slice(5), slice(2**30 - 5, 2**30 + 5), slice(-10, None)):
            assert torch.equal(out[some], 2 * x[some])
        assert not out.isnan().any()
