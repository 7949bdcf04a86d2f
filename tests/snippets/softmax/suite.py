"""What every softmax kernel is tried on.

The test module of a kernel derives from `SoftmaxTests`, and adds what is its own:

    class TestOnline(SoftmaxTests):
        function = staticmethod(online.softmax)
        blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})
"""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import (
    DTYPES,
    INF,
    LAYOUTS,
    NAN,
    SPECIALS,
    STRUCTURED,
    far_apart,
    lengths_around,
    name,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension, in float64."""
    return torch.softmax(x.double(), dim=-1)


def baseline(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension, as PyTorch computes it in the dtype of x."""
    return torch.softmax(x, dim=-1)


def row_sum_bound(dtype: torch.dtype) -> float:
    """How far the sum of a row may be from 1: one rounding, and the float32 inside."""
    inner = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.finfo(dtype).eps + 16 * torch.finfo(inner).eps


class SoftmaxTests(Suite):
    """What holds of every softmax kernel that this site publishes as right.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        function: (x, **options) -> [rows, cols]. With the first of `blocks`, a row of
            200 columns is more than one tile, if the kernel has them.
        block: columns of a tile in the first of `blocks`, or a power of two.
        refused: values of options that are refused.
        log: is the output the logarithm of softmax?
    """

    outputs = ("y",)
    log: ClassVar[bool] = False
    block: ClassVar[int] = 64
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def example(self, device: str) -> Named:
        """x, of one tile."""
        return {"x": normal((2, 3), torch.float32, device)}

    def reference(self, x: torch.Tensor) -> torch.Tensor:
        """Softmax in float64, or its logarithm."""
        return torch.log_softmax(x.double(), dim=-1) if self.log else reference(x)

    def baseline(self, x: torch.Tensor) -> torch.Tensor:
        """The same computation in PyTorch, in the dtype of x."""
        return torch.log_softmax(x, dim=-1) if self.log else baseline(x)

    def run(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """The output, contiguous."""
        found = super().run(*inputs, **options)
        assert found["y"].is_contiguous()
        return found

    def check_weights(
        self, y: torch.Tensor, dtype: torch.dtype = torch.float64
    ) -> None:
        """Those of a row sum to 1, added up in `dtype`."""
        bound = row_sum_bound(y.dtype)
        if self.log:
            # Each logarithm is rounded by a part of itself: their mean is the entropy.
            y, bound = y.to(dtype).exp(), bound * (1 + math.log(y.shape[1]))
        assert ((y.sum(dim=-1, dtype=dtype) - 1).abs() <= bound).all()

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {"length": lengths_around(self.block)}

    def refusals(self) -> dict[str, Refusal]:
        """Other numbers of dimensions, other dtypes, other options."""
        found = {}
        for shape in ((), (4,), (2, 3, 4)):
            said = rf"x .*({len(shape)} dimensions|\[.*\]).*; it must.* 2"
            change = {"x": lambda x, shape=shape: x.new_zeros(shape)}
            found[f"{len(shape)} dimensions"] = Refusal(said, change)
        for dtype in (torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn):
            said = f"x .*{dtype}.*; it must.*float64"
            change = {"x": lambda x, dtype=dtype: x.to(dtype)}
            found[name(dtype)] = Refusal(said, change)
        for option, values in self.refused.items():
            for bad in values:
                said = f"{option} is {bad}; it must be"
                found[f"{option}={bad}"] = Refusal(said, options={option: bad})
        return found

    @every_dtype
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
    def test_empty(
        self, shape: tuple[int, int], dtype: torch.dtype, device: str
    ) -> None:
        y = self.run(torch.zeros(shape, dtype=dtype, device=device))["y"]
        assert (y.shape, y.dtype) == (shape, dtype)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_layout(self, layout: str, device: str) -> None:
        x = guarded(LAYOUTS[layout](normal((5, 100), torch.float32, device)))
        before = x.clone()
        self.check(x)
        assert torch.equal(x, before), "x was written to"

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, device: str) -> None:
        self.check(STRUCTURED[kind](normal((5, 200), torch.float32, device)))

    @pytest.mark.parametrize("special", SPECIALS)
    def test_special_values_in_a_short_row(self, special: str, device: str) -> None:
        # The rest of the tile is masked: it must not hide a row of -inf or NaN.
        value, where = SPECIALS[special]
        x = normal((2, 3), torch.float32, device)
        x[1, where] = value
        self.check(x)

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, axis: int, device: str) -> None:
        x = far_apart((4, 4), axis, torch.float16, device)
        self.check(x)

    @every_dtype
    @pytest.mark.parametrize("shift", [-200, 10_000])
    def test_a_shift_changes_nothing(
        self, shift: int, dtype: torch.dtype, device: str
    ) -> None:
        # Whole multiples of the spacing of dtype near the shift: x + shift is exact.
        spacing = 64 if abs(shift) > 1000 else 1
        x = (normal((2, 200), torch.float64, device).clamp(-3, 3) * 2).round() * spacing
        shifted = x + shift // spacing * spacing
        assert torch.equal(shifted.to(dtype).double(), shifted)
        y, y_shifted = (self.run(x.to(dtype))["y"] for x in (x, shifted))
        assert torch.equal(y, y_shifted)
        self.check_weights(y)

    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_every_row_count(self, rows: int, device: str) -> None:
        x = guarded(normal((rows, 70), torch.float32, device))
        self.check(x)

    @every_dtype
    def test_large_values(self, dtype: torch.dtype, device: str) -> None:
        x = (normal((3, 200), torch.float64, device) * 1e4).to(dtype)
        self.check(x)

    @pytest.mark.parametrize("special", SPECIALS)
    def test_special_values(self, special: str, device: str) -> None:
        value, where = SPECIALS[special]
        x = normal((2, 200), torch.float32, device)
        x[1, where] = value
        self.check(x)

    @every_dtype
    def test_every_length(
        self,
        length: int,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        y = self.check(guarded(normal((2, length), dtype, device)))["y"]
        self.check_weights(y)

    def test_every_block_size(self, device: str) -> None:
        x = normal((2, 200), torch.float32, device)
        results = [self.check(x, blocks=blocks)["y"] for blocks in self.blocks]
        for y in results[1:]:
            torch.testing.assert_close(y, results[0], rtol=2e-6, atol=0)

    # One property, inherited by the tests of every kernel.
    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(
        rows=st.integers(1, 3),
        cols=st.integers(1, 100),
        dtype=st.sampled_from(DTYPES),
        scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
        specials=st.dictionaries(
            st.integers(0, 2**20), st.sampled_from([-INF, INF, NAN, 0.0]), max_size=20
        ),
        order=st.randoms(use_true_random=False),
    )
    def test_any_row(
        self,
        device: str,
        rows: int,
        cols: int,
        dtype: torch.dtype,
        scale: float,
        specials: dict[int, float],
        order: Any,
    ) -> None:
        seed = order.randrange(2**30)
        x = normal((rows, cols), torch.float64, device, seed=seed) * scale
        for place, value in specials.items():
            x.view(-1)[place % x.numel()] = value
        x = x.to(dtype)
        y = self.check(x)["y"]
        weights = y.exp() if self.log else y
        inside = (weights >= 0) & (weights <= 1 + row_sum_bound(dtype))
        assert (inside | weights.isnan()).all()

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        x = torch.empty((rows, cols), dtype=torch.bfloat16, device="cuda").normal_()
        self.check_huge(x)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_transposed(self) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        x = torch.empty((cols, rows), dtype=torch.bfloat16, device="cuda").normal_().T
        self.check_huge(x)

    def check_huge(self, x: torch.Tensor) -> None:
        """All row sums, and the values of the first, middle and last rows."""
        y = self.function(x)
        self.check_weights(y, torch.float32)
        rows = x.shape[0]
        for some in (slice(2), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            check_accuracy(y[some], self.reference(x[some]), self.baseline(x[some]))
