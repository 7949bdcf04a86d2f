"""What every backward pass of a norm is tried on.

The test module of a kernel derives from `NormGradientTests`, and adds what is its own:

    class TestBackward(NormGradientTests):
        function = staticmethod(layer_norm_backward.layer_norm_backward)
        blocks = ({"programs": 2}, {"programs": 1}, {"programs": 7})
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import (
    LAYOUTS,
    NAN,
    STRUCTURED,
    View,
    far_apart,
    lengths_around,
    name,
    normal,
)
from tests.harness.launches import pretend_gpu
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
Tensors = tuple[torch.Tensor, ...]

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name)


class NormGradientTests(Suite):
    """What holds of every kernel for the gradients of a norm.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        function: (dy, x, weight, *statistics, **options) -> dx, dw, db.
        statistics: what the forward pass kept of each row.
        eps: of the norm.
        refused: values of options that are refused.
        longest: columns that it takes; None if any number.
        lengths: of rows, to try.
        counts: of rows, to try; some programs have more than one tile of the last.
        rows: of most tests.
        many: rows, where it takes many; a power of two.
        several: options for more partial sums than are read at a time.
    """

    outputs = ("dx", "dw", "db")
    statistics: ClassVar[tuple[str, ...]] = ("mean", "rstd")
    eps: ClassVar[float] = 1e-5
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {"programs": (0, -1)}
    longest: ClassVar[int | None] = 65536
    lengths: ClassVar[tuple[int, ...]] = lengths_around(64)
    counts: ClassVar[tuple[int, ...]] = (1, 2, 31, 32, 33, 65, 200)
    rows: ClassVar[int] = 70
    many: ClassVar[int] = 512
    several: ClassVar[dict[str, int]] = {"programs": 100}

    def norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """The forward pass, in PyTorch."""
        return F.layer_norm(x, x.shape[1:], weight, bias, self.eps)

    def kept(self, x: torch.Tensor) -> Tensors:
        """What the forward pass keeps of x, float32: computed in float64."""
        x = x.double()
        variance = x.var(dim=1, correction=0)
        return x.mean(dim=1).float(), (variance + self.eps).rsqrt().float()

    def inputs(self, x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor) -> Any:
        """All that the function is given."""
        return dy, x, weight, *map(guarded, self.kept(x))

    def example(self, device: str) -> Named:
        """Of three rows."""
        dy, x = (normal((3, 5), torch.float32, device, seed=seed) for seed in (1, 0))
        weight = normal((5,), torch.float32, device, seed=2)
        names = "dy", "x", "weight", *self.statistics
        return dict(zip(names, self.inputs(x, dy, weight), strict=True))

    def gradients(
        self, dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
    ) -> Named:
        """PyTorch's, in the dtype of all three."""
        leaves = [t.detach().requires_grad_() for t in (x, weight, weight.clone())]
        with torch.enable_grad():
            found = torch.autograd.grad(self.norm(*leaves), leaves[: self.count], dy)
        return dict(zip(self.outputs, found, strict=True))

    @property
    def count(self) -> int:
        """How many gradients there are."""
        return len(self.outputs)

    def reference(
        self, dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *kept: Any
    ) -> Named:
        """PyTorch's gradients in float64."""
        return self.gradients(dy.double(), x.double(), weight.double())

    def baseline(
        self, dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *kept: Any
    ) -> Named:
        """The same in the dtype of x, or that of the weights if it has more digits."""
        dtype = torch.promote_types(x.dtype, weight.dtype)
        found = self.gradients(dy.to(dtype), x.to(dtype), weight.to(dtype))
        dtypes = {"dx": x.dtype, "dw": weight.dtype, "db": weight.dtype}
        return {key: found[key].to(dtypes[key]) for key in found}

    def check_all(
        self, x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, **options: Any
    ) -> Named:
        """All gradients by the rule; nothing that was given has changed."""
        given = self.inputs(x, dy, weight)
        before = [t.clone() for t in given]
        found = self.check(*given, **options)
        assert all(gradient.is_contiguous() for gradient in found.values())
        for tensor, old in zip(given, before, strict=True):
            assert torch.equal(tensor.nan_to_num(), old.nan_to_num())
        return found

    def try_shape(
        self,
        rows: int,
        cols: int,
        dtype: torch.dtype,
        device: str,
        weights: torch.dtype | None = None,
        **options: Any,
    ) -> Named:
        """Normal values; rows have means and spreads of their own."""
        x = normal((rows, cols), torch.float64, device)
        row = normal((rows, 2), torch.float64, device, seed=3)
        x = x * row[:, :1].exp() + row[:, 1:]
        dy = normal((rows, cols), dtype, device, seed=1)
        weight = normal((cols,), weights or dtype, device, seed=2)
        return self.check_all(*map(guarded, (x.to(dtype), dy, weight)), **options)

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {"length": self.lengths, "count": self.counts}

    def refusals(self) -> dict[str, Refusal]:
        """Other dimensions, shapes, dtypes, devices, options."""
        found = {}
        for shape in ((), (5,), (2, 3, 5)):
            said = rf"x has {len(shape)} dimensions; it must have 2"
            change = {"x": lambda x, shape=shape: x.new_zeros(shape)}
            found[f"{len(shape)} dimensions"] = Refusal(said, change)
        for tensor in ("dy", "weight", *self.statistics):
            for what, view in OTHER_SHAPES.items():
                said = rf"{tensor} has shape \[.*\]; it must be \[.*\], by that of x"
                found[f"{what} of {tensor}"] = Refusal(said, {tensor: view})
        for dtype in (torch.float64, torch.int32, torch.float8_e4m3fn):
            for tensor in ("x", "weight"):
                said = f"{tensor} is {dtype}; it must be one of .*float16"
                change = {tensor: lambda x, dtype=dtype: x.to(dtype)}
                found[f"{name(dtype)} of {tensor}"] = Refusal(said, change)
        for tensor in ("dy", *self.statistics):
            said = f"{tensor} is torch.float16; it must be one of .*float32"
            found[f"dtype of {tensor}"] = Refusal(said, {tensor: torch.Tensor.half})
        for tensor in ("dy", "weight", *self.statistics):
            change = {tensor: lambda x: x.to("meta")}
            said = f"{tensor} is on meta; it must be on .*, as x"
            found[f"device of {tensor}"] = Refusal(said, change)
        if self.longest:
            cols = self.longest + 1
            said = f"x has {cols} columns; it must have at most {self.longest}"
            change = dict.fromkeys(
                ("x", "dy"), lambda x: x[:, :1].expand(len(x), cols)
            ) | {"weight": lambda w: w[:1].expand(cols)}
            found["too many columns"] = Refusal(said, change)
        for option, values in self.refused.items():
            for bad in values:
                said = f"{option} is {bad}; it must be at least 1"
                found[f"{option}={bad}"] = Refusal(said, options={option: bad})
        return found

    @every_dtype
    def test_a_few_rows(self, dtype: torch.dtype, device: str) -> None:
        self.try_shape(9, 40, dtype, device)

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
    def test_empty(self, shape: tuple[int, int], device: str) -> None:
        x = torch.zeros(shape, dtype=torch.float16, device=device)
        weight = torch.ones(shape[1], device=device)
        kept = [torch.zeros(shape[0], device=device) for _ in self.statistics]
        found = self.run(x, x, weight, *kept)
        assert (found["dx"].shape, found["dx"].dtype) == (shape, torch.float16)
        for key in self.outputs[1:]:
            # The sum over no rows is 0.
            assert (found[key].shape, found[key].dtype) == (weight.shape, weight.dtype)
            assert (found[key] == 0).all()

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("tensor", ["x", "dy"])
    def test_every_layout(self, tensor: str, layout: str, device: str) -> None:
        x, dy = (normal((7, 50), torch.float32, device, seed=seed) for seed in (0, 1))
        if tensor == "x":
            x = LAYOUTS[layout](x)
        else:
            dy = LAYOUTS[layout](dy)
        weight = normal((50,), torch.float32, device, seed=2)
        self.check_all(guarded(x), guarded(dy), guarded(weight))

    def test_the_gradient_of_a_sum_has_strides_of_0(self, device: str) -> None:
        x = normal((self.rows, 50), torch.float32, device)
        dy = torch.ones((), device=device).expand(x.shape)
        self.check_all(x, dy, normal((50,), torch.float32, device, seed=2))

    def test_vectors_of_any_stride(self, device: str) -> None:
        x, dy = (normal((7, 50), torch.float32, device, seed=seed) for seed in (0, 1))
        weight = normal((50, 3), torch.float32, device, seed=2)[:, 1]
        kept = (torch.stack([v, 9 * v], dim=1)[:, 0] for v in self.kept(x))
        self.check(dy, x, weight, *kept)

    @pytest.mark.parametrize("kind", STRUCTURED)
    @pytest.mark.parametrize("tensor", ["x", "dy", "both"])
    def test_structured_inputs(self, tensor: str, kind: str, device: str) -> None:
        shape = self.rows, 50
        x, dy = (normal(shape, torch.float32, device, seed=seed) for seed in (0, 1))
        make: View = STRUCTURED[kind]
        x = make(x) if tensor != "dy" else x
        dy = make(dy) if tensor != "x" else dy
        self.check_all(x, dy, normal((50,), torch.float32, device, seed=2))

    def test_a_row_alone_counts(self, device: str) -> None:
        # Of the rows of dy one is not 0: dw and db are of that row.
        shape = self.rows, 50
        x, dy = (normal(shape, torch.float32, device, seed=seed) for seed in (0, 1))
        for row in sorted({n for n in (0, 1, 5, 31, 32, 64, 69) if n < self.rows}):
            one = torch.zeros_like(dy)
            one[row] = dy[row]
            found = self.check_all(x, one, torch.ones(50, device=device))
            assert (found["dx"][row] != 0).any()
            assert (found["dx"].count_nonzero(dim=1) > 0).sum() == 1

    def test_every_row_count(self, count: int, device: str) -> None:
        self.try_shape(count, 50, torch.float32, device)

    def test_every_length(self, length: int, device: str) -> None:
        # Where a sum of some rows is near 0, PyTorch's may be right by chance: of few
        # columns, that may be all of them.
        rows = 5 if length > 8 else 1
        for dtype in DTYPES if length > 1 else ():
            self.try_shape(rows, length, dtype, device)

    def test_one_column(self, device: str) -> None:
        # A norm of one column is a constant but for eps, so dx is near 0, and so is the
        # rule's bound.
        x, dy = (normal((5, 1), torch.float32, device, seed=i) for i in (0, 1))
        found = self.run(*self.inputs(x, dy, torch.ones(1, device=device)))
        assert found["dx"].abs().max() <= 1e-4 * dy.abs().max()

    def test_every_number_of_programs(self, device: str) -> None:
        results, rows = [], self.counts[-1]
        for blocks in self.blocks:
            found = self.try_shape(rows, 70, torch.float32, device, blocks=blocks)
            results.append(found)
        for found in results[1:]:
            for key, gradient in found.items():
                torch.testing.assert_close(gradient, results[0][key], rtol=0, atol=1e-4)

    def test_rows_that_are_tiles_of_their_own(self, device: str) -> None:
        self.try_shape(70, 2050, torch.float32, device, blocks=self.several)

    def test_as_many_programs_as_the_gpu_holds(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pretend_gpu(monkeypatch, multi_processor_count=3)
        monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda _: True))
        self.try_shape(self.counts[-1], 70, torch.float16, device, blocks={})

    def test_a_cpu_cannot_say_how_many_programs(self) -> None:
        if "programs" not in self.refused:
            pytest.skip("it asks no GPU")
        with pytest.raises(ValueError, match=r"^programs is None; it must .*cpu"):
            self.run(*self.example("cpu").values(), blocks={})

    @every_dtype
    @pytest.mark.parametrize("weights", DTYPES, ids=name)
    def test_weights_of_another_dtype(
        self, weights: torch.dtype, dtype: torch.dtype, device: str
    ) -> None:
        self.try_shape(self.rows, 50, dtype, device, weights)

    def test_sums_have_more_digits_than_half(self, device: str) -> None:
        # So many times 1 + 2^-10: in float16 or bfloat16 the small part would be lost.
        x = normal((1, 40), torch.float16, device).expand(self.many, 40)
        dy = torch.full((), 1 + 2**-10, dtype=torch.float16, device=device)
        weight = torch.ones(40, dtype=torch.float16, device=device)
        found = self.check_all(x, dy.expand(self.many, 40), weight)
        if "db" in found:
            assert (found["db"] == self.many * (1 + 2**-10)).all()

    @every_dtype
    @pytest.mark.parametrize("value", [0.0, 3.0, -1000.0])
    def test_constant_rows(self, value: float, dtype: torch.dtype, device: str) -> None:
        x = normal((9, 50), dtype, device)
        x[2:5] = value
        dy = normal((9, 50), dtype, device, seed=1)
        self.check_all(x, dy, normal((50,), dtype, device, seed=2))

    @every_dtype
    @pytest.mark.parametrize("shift", [30, 1000])
    def test_a_large_mean(self, shift: int, dtype: torch.dtype, device: str) -> None:
        x = (normal((9, 50), torch.float64, device) * 8 + shift).to(dtype)
        dy = normal((9, 50), dtype, device, seed=1)
        self.check_all(x, dy, normal((50,), dtype, device, seed=2))

    @every_dtype
    @pytest.mark.parametrize("scale", [1e-3, 1e4])
    def test_large_and_small_values(
        self, scale: float, dtype: torch.dtype, device: str
    ) -> None:
        x = (normal((9, 50), torch.float64, device) * scale).to(dtype)
        dy = normal((9, 50), dtype, device, seed=1)
        self.check_all(x, dy, normal((50,), dtype, device, seed=2))

    @pytest.mark.parametrize("tensor", ["x", "dy"])
    def test_nan_stays_in_its_row_and_column(self, tensor: str, device: str) -> None:
        x, dy = (normal((9, 50), torch.float32, device, seed=seed) for seed in (0, 1))
        (x if tensor == "x" else dy)[4, 49] = NAN
        found = self.check_all(x, dy, normal((50,), torch.float32, device, seed=2))
        assert found["dx"].isnan().any(dim=1).nonzero().flatten().tolist() == [4]

    def test_finite_differences(self, device: str) -> None:
        # Independent of PyTorch's gradients: the loss on both sides of x.
        x, dy, way = (normal((4, 30), torch.float64, device, seed=n) for n in range(3))
        weight = normal((30,), torch.float64, device, seed=3)

        def loss(x: torch.Tensor, weight: torch.Tensor) -> float:
            return (self.norm(x, weight, torch.zeros_like(weight)) * dy).sum().item()

        x, dy, weight = (t.float().double() for t in (x, dy, weight))
        given = self.inputs(x.float(), dy.float(), weight.float())
        found, step = self.run(*given), 1e-4
        slope = (loss(x + step * way, weight) - loss(x - step * way, weight)) / 2 / step
        assert abs((found["dx"] * way).sum().item() - slope) < 1e-5 * dy.numel()
        turn = way[0]
        slope = (loss(x, weight + step * turn) - loss(x, weight - step * turn)) / 2
        assert abs((found["dw"] * turn).sum().item() - slope / step) < 1e-3

    def test_the_same_bits_in_every_run(self, device: str) -> None:
        on_gpu = device == "cuda"
        rows, cols = (5000, 1000) if on_gpu else (self.counts[-1], 50)
        x, dy = (normal((rows, cols), torch.float32, device, seed=s) for s in (0, 1))
        given = self.inputs(x, dy, normal((cols,), torch.float32, device, seed=2))
        first = self.run(*given, blocks={} if on_gpu else None)
        for _ in range(99 if on_gpu else 2):
            found = self.run(*given, blocks={} if on_gpu else None)
            assert all(torch.equal(found[key], first[key]) for key in first)

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("tensor", ["x", "dy"])
    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, tensor: str, axis: int, device: str) -> None:
        x, dy = (normal((4, 4), torch.float16, device, seed=seed) for seed in (0, 1))
        far = far_apart((4, 4), axis, torch.float16, device)
        x, dy = (far, dy) if tensor == "x" else (x, far)
        self.check(*self.inputs(x, dy, normal((4,), torch.float16, device, seed=2)))

    # One property, inherited by the tests of every kernel.
    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(
        rows=st.integers(0, 2**20),
        cols=st.integers(33, 64),  # of one kernel: compiling takes longer than running
        dtype=st.sampled_from(DTYPES),
        seed=st.integers(0, 2**20),
    )
    def test_any_shape(
        self,
        device: str,
        rows: int,
        cols: int,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        shape = rows % self.rows + 1, cols
        x, dy = (normal(shape, dtype, device, seed=seed + n) for n in (0, 1))
        weight = normal((cols,), torch.float32, device, seed=seed + 2)
        self.check(*self.inputs(x, dy, weight))

    @pytest.mark.gpu
    @every_dtype
    @pytest.mark.parametrize("cols", [256, 1000, 4096, 8192, 16384, 40000])
    def test_as_in_a_model(self, cols: int, dtype: torch.dtype) -> None:
        rows = 2**23 // cols
        x, dy = (torch.randn((rows, cols), device="cuda").to(dtype) for _ in range(2))
        weight = torch.randn(cols, device="cuda").to(dtype)
        self.check(*self.inputs(x, dy, weight), blocks={})

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        x = torch.empty((rows, cols), dtype=torch.bfloat16, device="cuda").normal_()
        dy = torch.empty_like(x).normal_()
        weight = torch.randn(cols, device="cuda")
        # In float64 some rows at a time fit.
        some = zip(*map(self.kept, x.split(2**14)), strict=True)
        kept = [torch.cat(parts) for parts in some]
        found = self.run(dy, x, weight, *kept, blocks={})
        for some in (slice(2), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            near = dy[some], x[some], weight
            expected, own = self.reference(*near), self.baseline(*near)
            check_accuracy(found["dx"][some], expected["dx"], own["dx"])
        if "db" in found:
            db = sum(part.double().sum(dim=0) for part in dy.split(2**14))
            assert (found["db"] - db).abs().max() < 1e-5 * db.abs().max()


OTHER_SHAPES: dict[str, View] = {
    "one more": lambda x: torch.cat([x, x[:1]]),
    "one less": lambda x: x[:-1],
    "one more dimension": lambda x: x[None],
}
