"""What the forward pass of every norm is tried on.

The test module of a kernel derives from `LayerNormTests` or `RmsNormTests`, and adds
what is its own:

    class TestLayerNorm(LayerNormTests):
        function = staticmethod(layer_norm.layer_norm)
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F

from tests.harness.accuracy import Rule, check_accuracy, compare
from tests.harness.inputs import (
    DTYPES,
    HALVES,
    LAYOUTS,
    SPECIALS,
    STRUCTURED,
    View,
    far_apart,
    lengths_around,
    name,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name)
VECTORS: dict[str, View] = {
    "contiguous": lambda w: w,
    "every other": lambda w: w.repeat_interleave(2)[::2],
    "offset": lambda w: torch.cat([w[:5], w])[5:],
    "expanded": lambda w: w[:1].expand(w.shape),
}


def inner(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class NormTests(Suite):
    """What holds of every norm.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        function: (x, *vectors, eps, **options) -> the outputs.
        vectors: the names of the parameters [cols].
        block: columns of a tile in the first of `blocks`, or a power of two.
        units: by how many units in the last place of the largest deviation of a row
            the mean may be off, beside the errors of PyTorch.
    """

    asked = ("eps",)
    vectors: ClassVar[tuple[str, ...]]
    block: ClassVar[int] = 128
    units: ClassVar[float] = 4

    def with_vectors(
        self, x: torch.Tensor, dtype: torch.dtype | None = None
    ) -> tuple[torch.Tensor, ...]:
        """x, and normal values for each vector, in the dtype of x or another."""
        size, dtype = x.shape[1:], dtype or x.dtype
        return x, *(
            normal(size, dtype, str(x.device), seed=seed)
            for seed, _ in enumerate(self.vectors, 1)
        )

    def example(self, device: str) -> Named:
        """Two rows of three columns."""
        inputs = self.with_vectors(normal((2, 3), torch.float32, device))
        return dict(zip(("x", *self.vectors), inputs, strict=True))

    def run(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """The outputs: y is contiguous, the others are those of the arithmetic."""
        x, found = inputs[0], super().run(*inputs, **options)
        assert (found["y"].dtype, found["y"].shape) == (x.dtype, x.shape)
        assert found["y"].is_contiguous()
        for kept in self.outputs[1:]:
            assert found[kept].dtype == inner(x.dtype)
            assert found[kept].shape == x.shape[:1]
            assert found[kept].is_contiguous()
        return found

    def compare(
        self,
        found: Any,
        expected: Any,
        own: Any,
        *,
        judge: Callable[..., Any] = check_accuracy,
    ) -> None:
        """y by the rule; what is kept of a row, in units of its largest deviation.

        A mean near 0 is what is left of larger numbers, whose rounding it has. A GPU's
        root and quotient are off by a unit or two.
        """
        found, expected, own = map(self.named, (found, expected, own))
        judge(found["y"], expected["y"], own["y"])
        rstd = expected["rstd"]
        sizes = {"mean": 1 / rstd, "rstd": rstd}
        for kept in self.outputs[1:]:
            size = sizes[kept][sizes[kept].isfinite()]
            least = self.units * size.max().item() if len(size) else 0.0
            rule = Rule(least=least)
            try:
                compare(found[kept], expected[kept], own[kept], rule=rule)
            except AssertionError as error:
                raise AssertionError(f"{kept}: {error}") from None

    def check_rows(self, x: torch.Tensor, **options: Any) -> Named:
        """Hold the norm of x against the rule, with vectors in the dtype of x."""
        return self.check(*self.with_vectors(x), **options)

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        lengths = {"length": lengths_around(self.block), "vector": self.vectors}
        return super().cases() | lengths

    def refusals(self) -> dict[str, Refusal]:
        """Other numbers of dimensions, other dtypes, vectors that do not fit."""
        found = {}
        for shape in ((), (4,), (2, 3, 4)):
            said = rf"x has {len(shape)} dimensions; it must have 2"
            change = {"x": lambda x, shape=shape: x.new_zeros(shape)}
            found[f"{len(shape)} dimensions"] = Refusal(said, change)
        for dtype in (torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn):
            said = f"x is {dtype}; it must be one of .*float64"
            change = {"x": lambda x, dtype=dtype: x.to(dtype)}
            found[name(dtype)] = Refusal(said, change)
        wrong: dict[str, tuple[View, str]] = {
            "a column less": (lambda w: w[1:], r"has shape \[2\]; it must be \[3\]"),
            "one column": (lambda w: w[:1], r"has shape \[1\]; it must be \[3\]"),
            "two dimensions": (
                lambda w: w[None],
                r"has shape \[1, 3\]; it must be \[3\]",
            ),
            "float16": (torch.Tensor.half, "is torch.float16; it must be .*float32"),
            "float64": (torch.Tensor.double, "is torch.float64; it must be .*float32"),
            "integers": (torch.Tensor.int, "is torch.int32; it must be .*float32"),
            "another device": (lambda w: w.to("meta"), "is on meta; it must be on "),
        }
        for what, (change, said) in wrong.items():
            found |= of_each(self.vectors, what, change, said)
        return found

    @every_dtype
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
    def test_empty(
        self, shape: tuple[int, int], dtype: torch.dtype, device: str
    ) -> None:
        x = torch.zeros(shape, dtype=dtype, device=device)
        found = self.run(*self.with_vectors(x))
        assert all(found[kept].isnan().all() for kept in self.outputs[1:])

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_layout(self, layout: str, device: str) -> None:
        x = guarded(LAYOUTS[layout](normal((5, 100), torch.float32, device)))
        before = x.clone()
        self.check_rows(x)
        assert torch.equal(x, before), "x was written to"

    @pytest.mark.parametrize("layout", VECTORS)
    def test_every_layout_of_a_vector(
        self, layout: str, vector: str, device: str
    ) -> None:
        inputs = [*self.with_vectors(normal((3, 50), torch.float32, device))]
        place = 1 + self.vectors.index(vector)
        inputs[place] = guarded(VECTORS[layout](inputs[place]))
        self.check(*inputs)

    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_no_row_sees_another(self, rows: int, device: str) -> None:
        x = normal((rows, 70), torch.float64, device)
        ladder = torch.arange(1, rows + 1, device=device, dtype=torch.float64)[:, None]
        self.check_rows(guarded((x * ladder + 20 * ladder).float()))

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, device: str) -> None:
        self.check_rows(STRUCTURED[kind](normal((20, 200), torch.float32, device)))

    @pytest.mark.parametrize("dtype", [*HALVES, torch.float64], ids=name)
    def test_vectors_in_float32(self, dtype: torch.dtype, device: str) -> None:
        self.check(*self.with_vectors(normal((3, 70), dtype, device), torch.float32))

    @pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-5, 1e-3, 2.0])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=name)
    def test_eps(self, eps: float, dtype: torch.dtype, device: str) -> None:
        for size in (0.01, 1.0):
            self.check_rows(normal((2, 30), dtype, device) * size, eps=eps)

    @pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
    def test_a_constant_row_without_eps(self, value: float, device: str) -> None:
        x = normal((3, 40), torch.float32, device)
        x[1] = value
        inputs = self.with_vectors(x)
        y = self.run(*inputs, eps=0.0)["y"]
        check_accuracy(y, self.reference(*inputs, eps=0.0)[0], self.own(*inputs, eps=0))

    @pytest.mark.parametrize("cols", [3, 150])
    @pytest.mark.parametrize("special", SPECIALS)
    def test_special_values(self, special: str, cols: int, device: str) -> None:
        value, where = SPECIALS[special]
        x = normal((3, cols), torch.float32, device)
        x[1, where] = value
        inputs = self.with_vectors(x)
        found = self.run(*inputs)
        check_accuracy(found["y"], self.reference(*inputs)[0], self.own(*inputs))
        assert found["y"][::2].isfinite().all()
        assert all(found[kept][::2].isfinite().all() for kept in self.outputs[1:])

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, axis: int, device: str) -> None:
        self.check_rows(far_apart((4, 4), axis, torch.float16, device))

    @pytest.mark.large
    def test_vectors_beyond_31_bits(self, vector: str, device: str) -> None:
        inputs = [*self.with_vectors(normal((2, 4), torch.float16, device))]
        place = 1 + self.vectors.index(vector)
        inputs[place] = far_apart((4,), 0, torch.float16, device)
        self.check(*inputs)

    @every_dtype
    @pytest.mark.parametrize("mean", [10, 1000])
    def test_large_mean(self, mean: int, dtype: torch.dtype, device: str) -> None:
        x = normal((3, 200), torch.float64, device)
        self.check_rows((x + mean).to(dtype))

    @every_dtype
    @pytest.mark.parametrize("size", [1e-3, 1e4])
    def test_small_and_large_values(
        self, size: float, dtype: torch.dtype, device: str
    ) -> None:
        self.check_rows((normal((3, 100), torch.float64, device) * size).to(dtype))

    @every_dtype
    def test_every_length(self, length: int, dtype: torch.dtype, device: str) -> None:
        self.check_rows(guarded(normal((2, length), dtype, device)))

    def test_every_block_size(self, device: str) -> None:
        x = normal((3, 200), torch.float32, device) + 3
        for blocks in self.blocks:
            self.check_rows(x, blocks=blocks)

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=name)
    @pytest.mark.parametrize("cols", [1024, 4096, 5000, 16384, 32768, 65536])
    def test_rows_of_models(self, cols: int, dtype: torch.dtype) -> None:
        self.check_rows(normal((131, cols), dtype, "cuda") + 1)

    @pytest.mark.gpu
    @pytest.mark.large
    @pytest.mark.parametrize("transposed", [False, True])
    def test_more_than_31_bits_of_elements(self, transposed: bool) -> None:
        cols = 4096
        shape = 2**31 // cols + 3, cols
        shape = shape[::-1] if transposed else shape
        x = torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_()
        inputs = self.with_vectors(x.T if transposed else x)
        found, rows = self.run(*inputs), len(inputs[0])
        for some in (slice(2), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            part = inputs[0][some], *inputs[1:]
            these = {key: value[some] for key, value in found.items()}
            self.compare(these, self.reference(*part), self.baseline(*part))

    def own(self, *inputs: torch.Tensor, **asked: Any) -> torch.Tensor:
        """y by PyTorch; where dtypes differ, in that of the arithmetic."""
        x, *vectors = inputs
        if all(w.dtype == x.dtype for w in vectors):
            return self.torch_norm(x, *vectors, **asked)
        vectors = [w.to(inner(x.dtype)) for w in vectors]
        return self.torch_norm(x.to(inner(x.dtype)), *vectors, **asked).to(x.dtype)

    @staticmethod
    def torch_norm(*inputs: torch.Tensor, **asked: Any) -> torch.Tensor:
        """PyTorch's own function."""
        raise NotImplementedError


class LayerNormTests(NormTests):
    """What holds of every layer norm."""

    outputs = ("y", "mean", "rstd")
    vectors = ("weight", "bias")

    def reference(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float = 1e-5,
    ) -> tuple[torch.Tensor, ...]:
        """In float64."""
        x = x.double()
        mean = x.mean(dim=1, keepdim=True)
        rstd = ((x - mean).square().mean(dim=1, keepdim=True) + eps).sqrt().reciprocal()
        y = (x - mean) * rstd * weight.double() + bias.double()
        return y, mean[:, 0], rstd[:, 0]

    def baseline(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float = 1e-5,
    ) -> tuple[torch.Tensor, ...]:
        """As PyTorch computes it."""
        y, x = self.own(x, weight, bias, eps=eps), x.to(inner(x.dtype))
        variance, mean = torch.var_mean(x, dim=1, correction=0)
        return y, mean, (variance + eps).rsqrt()

    @staticmethod
    def torch_norm(
        x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
    ) -> torch.Tensor:
        """PyTorch's own function."""
        return F.layer_norm(x, x.shape[1:], weight, bias, eps)

    @every_dtype
    @pytest.mark.parametrize("mean", [1.5, 1001.5, 6000.0])
    def test_a_constant_row_is_the_bias(
        self, mean: float, dtype: torch.dtype, device: str
    ) -> None:
        # 1 / sqrt(eps) is 316: so much larger comes out what is not quite 0.
        x = torch.full((2, 130), mean, device=device).to(dtype)
        inputs = self.with_vectors(x)
        found = self.check(*inputs)
        assert torch.equal(found["y"], inputs[2].expand(x.shape))
        assert torch.equal(found["mean"].to(dtype), x[:, 0])

    @every_dtype
    def test_without_a_bias(self, dtype: torch.dtype, device: str) -> None:
        x, weight, bias = self.with_vectors(normal((5, 70), dtype, device))
        for none in ((), (None,)):
            found = self.run(x, weight, *none)
            wanted = self.run(x, weight, torch.zeros_like(bias))
            assert all(torch.equal(x, wanted[name]) for name, x in found.items())

    @every_dtype
    def test_a_shift_changes_nothing(self, dtype: torch.dtype, device: str) -> None:
        # Multiples of the spacing of dtype near the shift, so that x + shift is exact.
        x = (normal((2, 100), torch.float64, device).clamp(-3, 3) * 2).round() * 16
        shifted = x + 2048
        assert torch.equal(shifted.to(dtype).double(), shifted)
        found, moved = (
            self.run(*self.with_vectors(each.to(dtype))) for each in (x, shifted)
        )
        # Not the same bits: the first element is rounded off in another place.
        torch.testing.assert_close(
            moved["y"].double(), found["y"].double(), rtol=0, atol=4 * eps_of(dtype)
        )
        torch.testing.assert_close(moved["mean"], found["mean"] + 2048)


class RmsNormTests(NormTests):
    """What holds of every RMS norm."""

    outputs = ("y", "rstd")
    vectors = ("weight",)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
    ) -> tuple[torch.Tensor, ...]:
        """In float64."""
        x = x.double()
        rstd = (x.square().mean(dim=1, keepdim=True) + eps).sqrt().reciprocal()
        return x * rstd * weight.double(), rstd[:, 0]

    def baseline(
        self, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
    ) -> tuple[torch.Tensor, ...]:
        """As PyTorch computes it."""
        y, x = self.own(x, weight, eps=eps), x.to(inner(x.dtype))
        return y, (x.square().mean(dim=1) + eps).rsqrt()

    @staticmethod
    def torch_norm(
        x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
    ) -> torch.Tensor:
        """PyTorch's own function."""
        return F.rms_norm(x, x.shape[1:], weight, eps)


def eps_of(dtype: torch.dtype) -> float:
    """The machine epsilon of values up to 8."""
    return 8 * torch.finfo(dtype).eps
