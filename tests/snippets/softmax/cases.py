"""Inputs on which every softmax kernel is tried, and the tests that try them.

The test module of a kernel derives one class and adds what is its own:

    class TestOnline(SoftmaxTests):
        softmax = staticmethod(online.softmax)
        blocks = ({"block_cols": 64}, {"block_cols": 16}, {"block_cols": 512}, {})
"""

import inspect
import mmap
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
import triton
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INF = float("inf")
NAN = float("nan")

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LENGTHS: dict[str, Callable[[int], int]] = {
    "1": lambda block: 1,
    "3": lambda block: 3,
    "block-1": lambda block: block - 1,
    "block": lambda block: block,
    "block+1": lambda block: block + 1,
    "200": lambda block: 200,
    "1000": lambda block: 1000,
}
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sliced columns": lambda x: x.repeat(1, 2)[:, : x.shape[1]],
    "sliced rows": lambda x: x.repeat_interleave(2, dim=0)[::2],
    "every third column": lambda x: x.repeat_interleave(3, dim=1)[:, ::3],
    "transposed": lambda x: x.T.contiguous().T,
    "expanded rows": lambda x: x[:1].expand(x.shape),
    "expanded columns": lambda x: x[:, :1].expand(x.shape),
    "offset": lambda x: torch.cat([x.flatten()[:5], x.flatten()])[5:].view(x.shape),
}
# What a row may hold besides ordinary values: it replaces the columns of the slice.
SPECIALS: dict[str, tuple[float, slice]] = {
    "first tiles -inf": (-INF, slice(None, 150)),
    "last tiles -inf": (-INF, slice(50, None)),
    "every other -inf": (-INF, slice(None, None, 2)),
    "all but the last -inf": (-INF, slice(None, -1)),
    "all -inf": (-INF, slice(None)),
    "a NaN first": (NAN, slice(None, 1)),
    "a NaN last": (NAN, slice(-1, None)),
    "all NaN": (NAN, slice(None)),
    "a +inf first": (INF, slice(None, 1)),
    "a +inf last": (INF, slice(-1, None)),
    "all +inf": (INF, slice(None)),
}


def name(dtype: torch.dtype) -> str:
    """The dtype's name without "torch."."""
    return str(dtype).removeprefix("torch.")


every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name)


def normal(
    rows: int, cols: int, dtype: torch.dtype, device: str, *, seed: int = 0
) -> torch.Tensor:
    """[rows, cols] of normal values, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, cols, generator=generator, dtype=torch.float64)
    return x.to(dtype=dtype, device=device)


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


def far_apart(
    rows: int, cols: int, strides: tuple[int, int], dtype: torch.dtype, device: str
) -> torch.Tensor:
    """[rows, cols] of normal values whose offsets pass 2^31.

    On the CPU the memory between the elements is never touched, so it costs nothing.
    """
    size = (rows - 1) * strides[0] + (cols - 1) * strides[1] + 1
    if device == "cpu":
        storage = torch.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype=dtype)
    else:
        storage = torch.empty(size, dtype=dtype, device=device)
    x = storage.as_strided((rows, cols), strides)
    return x.copy_(normal(rows, cols, dtype, device))


class SoftmaxTests:
    """What holds of every softmax kernel that this site publishes as right.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        softmax: the function under test: (x, **block sizes) -> [rows, cols].
        blocks: block sizes to try: all give the same result. Most tests use the first,
            in which a row of 200 columns is more than one tile, if the kernel has them.
        block: columns of a tile in the first of `blocks`, or a power of two.
    """

    softmax: ClassVar[Callable[..., torch.Tensor]]
    blocks: ClassVar[tuple[dict[str, int], ...]] = ({},)
    block: ClassVar[int] = 64

    def run(self, x: torch.Tensor) -> torch.Tensor:
        """The kernel with the first block sizes."""
        return self.softmax(x, **self.blocks[0])

    def baseline(self, x: torch.Tensor) -> torch.Tensor:
        """The same computation in PyTorch, in the dtype of x."""
        return baseline(x)

    @pytest.mark.parametrize("shape", [(), (4,), (2, 3, 4)])
    def test_refuses_other_shapes(self, shape: tuple[int, ...], device: str) -> None:
        with pytest.raises(ValueError, match=f"x has {len(shape)} dimensions.* 2"):
            self.run(torch.zeros(shape, device=device))

    @pytest.mark.parametrize(
        "dtype", [torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn]
    )
    def test_refuses_other_dtypes(self, dtype: torch.dtype, device: str) -> None:
        with pytest.raises(ValueError, match=f"x is {dtype}.*float64"):
            self.run(torch.zeros((2, 3), device=device).to(dtype))

    def test_refuses_the_cpu_without_the_interpreter(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
        with pytest.raises(ValueError, match=r"x is on cpu.*TRITON_INTERPRET"):
            self.run(torch.zeros(2, 3))

    @pytest.mark.parametrize("bad", [0, -2, 2**17])
    def test_refuses_other_options(self, bad: int, device: str) -> None:
        parameters = inspect.signature(self.softmax).parameters.values()
        options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert list(self.blocks[0]) == options, "blocks does not try every option"
        x = torch.zeros((2, 3), device=device)
        for option in options:
            for value in (bad, 3) if option.startswith("block_") else (bad,):
                match = f"^{option} is {value}; it must be"
                with pytest.raises(ValueError, match=match):
                    self.softmax(x, **{**self.blocks[0], option: value})

    @every_dtype
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
    def test_empty(
        self, shape: tuple[int, int], dtype: torch.dtype, device: str
    ) -> None:
        y = self.run(torch.zeros(shape, dtype=dtype, device=device))
        assert (y.shape, y.dtype) == (shape, dtype)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_layout(
        self, layout: str, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        x = guarded(LAYOUTS[layout](normal(5, 100, torch.float32, device)))
        before = x.clone()
        y = self.run(x)
        check_accuracy(y, reference(x), self.baseline(x))
        assert y.is_contiguous()
        assert torch.equal(x, before), "x was written to"

    @pytest.mark.parametrize("special", SPECIALS)
    def test_special_values_in_a_short_row(
        self, special: str, device: str, check_accuracy: Callable
    ) -> None:
        # The rest of the tile is masked: it must not hide a row of -inf or NaN.
        value, where = SPECIALS[special]
        x = normal(2, 3, torch.float32, device)
        x[1, where] = value
        check_accuracy(self.run(x), reference(x), self.baseline(x))

    @pytest.mark.parametrize("strides", [(2**30, 1), (1, 2**30)])
    @pytest.mark.large
    def test_offsets_beyond_31_bits(
        self, strides: tuple[int, int], device: str, check_accuracy: Callable
    ) -> None:
        x = far_apart(4, 4, strides, torch.float16, device)
        check_accuracy(self.run(x), reference(x), self.baseline(x))

    @every_dtype
    @pytest.mark.parametrize("shift", [-200, 10_000])
    def test_a_shift_changes_nothing(
        self, shift: int, dtype: torch.dtype, device: str
    ) -> None:
        # Whole multiples of the spacing of dtype near the shift: x + shift is exact.
        spacing = 64 if abs(shift) > 1000 else 1
        x = (normal(2, 200, torch.float64, device).clamp(-3, 3) * 2).round() * spacing
        shifted = x + shift // spacing * spacing
        assert torch.equal(shifted.to(dtype).double(), shifted)
        y = self.run(x.to(dtype))
        assert torch.equal(y, self.run(shifted.to(dtype)))
        assert ((y.double().sum(dim=-1) - 1).abs() <= row_sum_bound(dtype)).all()

    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_every_row_count(
        self, rows: int, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        x = guarded(normal(rows, 70, torch.float32, device))
        check_accuracy(self.run(x), reference(x), self.baseline(x))

    @every_dtype
    def test_large_values(
        self, dtype: torch.dtype, device: str, check_accuracy: Callable
    ) -> None:
        x = (normal(3, 200, torch.float64, device) * 1e4).to(dtype)
        y = self.run(x)
        check_accuracy(y, reference(x), self.baseline(x))

    @pytest.mark.parametrize("special", SPECIALS)
    def test_special_values(
        self, special: str, device: str, check_accuracy: Callable
    ) -> None:
        value, where = SPECIALS[special]
        x = normal(2, 200, torch.float32, device)
        x[1, where] = value
        check_accuracy(self.run(x), reference(x), self.baseline(x))

    @every_dtype
    @pytest.mark.parametrize("length", LENGTHS)
    def test_every_length(
        self,
        length: str,
        dtype: torch.dtype,
        device: str,
        guarded: Callable,
        check_accuracy: Callable,
    ) -> None:
        x = guarded(normal(2, LENGTHS[length](self.block), dtype, device))
        y = self.run(x)
        check_accuracy(y, reference(x), self.baseline(x))
        assert y.is_contiguous()
        assert ((y.double().sum(dim=-1) - 1).abs() <= row_sum_bound(dtype)).all()

    def test_every_block_size(self, device: str, check_accuracy: Callable) -> None:
        x = normal(2, 200, torch.float32, device)
        results = [self.softmax(x, **blocks) for blocks in self.blocks]
        for y in results:
            check_accuracy(y, reference(x), self.baseline(x))
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
        check_accuracy: Callable,
        rows: int,
        cols: int,
        dtype: torch.dtype,
        scale: float,
        specials: dict[int, float],
        order: Any,
    ) -> None:
        seed = order.randrange(2**30)
        x = normal(rows, cols, torch.float64, device, seed=seed) * scale
        for place, value in specials.items():
            x.view(-1)[place % x.numel()] = value
        x = x.to(dtype)
        y = self.run(x)
        check_accuracy(y, reference(x), self.baseline(x))
        assert ((y >= 0) & (y <= 1 + row_sum_bound(dtype)) | y.isnan()).all()

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, check_accuracy: Callable) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        x = torch.empty((rows, cols), dtype=torch.bfloat16, device="cuda").normal_()
        self.check_huge(x, check_accuracy)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_transposed(
        self, check_accuracy: Callable
    ) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        x = torch.empty((cols, rows), dtype=torch.bfloat16, device="cuda").normal_().T
        self.check_huge(x, check_accuracy)

    def check_huge(self, x: torch.Tensor, check_accuracy: Callable) -> None:
        """All row sums, and the values of the first, middle and last rows."""
        y = self.softmax(x)
        sums = y.sum(dim=-1, dtype=torch.float32)
        assert ((sums - 1).abs() <= row_sum_bound(x.dtype)).all()
        rows = x.shape[0]
        for some in (slice(2), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            check_accuracy(y[some], reference(x[some]), self.baseline(x[some]))
