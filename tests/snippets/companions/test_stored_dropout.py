"""Tests of snippets/companions/stored_dropout.py."""

import functools
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from snippets.companions import stored_dropout
from tests.harness.inputs import DTYPES, INTERPRETED, lengths_around, name, normal
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite
from tests.snippets.companions.dropped import start_at, untouched

P = 0.3


def mask(*shape: int, device: str, seed: int = 9) -> torch.Tensor:
    """True with probability 0.7."""
    return normal(shape, torch.float64, device, seed=seed) > -0.5244


@functools.wraps(stored_dropout.dropout)
def dropout(x: torch.Tensor, keep: torch.Tensor, **options: Any) -> torch.Tensor:
    """With a p, if none is given."""
    return stored_dropout.dropout(x, keep, **{"p": P, **options})


class TestStoredDropout(Suite):
    function = staticmethod(dropout)
    outputs = ("y",)
    asked = ("p",)
    blocks = ({"block": 16}, {"block": 64}, {"block": 1}, {"block": 1024}, {})

    def example(self, device: str) -> Named:
        """x and a mask."""
        x = normal((2, 3), torch.float32, device)
        return {"x": x, "keep": mask(2, 3, device=device)}

    def reference(self, x: torch.Tensor, keep: torch.Tensor, p: float = P) -> Any:
        """In float64."""
        return torch.where(keep, x.double() * self.scale(p), 0.0)

    def baseline(self, x: torch.Tensor, keep: torch.Tensor, p: float = P) -> Any:
        """In the dtype of x."""
        return torch.where(keep, x * self.scale(p), 0.0)

    def scale(self, p: float) -> float:
        """1 / (1 - p); 0 where nothing stays."""
        return 1 / (1 - p) if p < 1 else 0.0

    def cases(self) -> dict[str, Iterable[Any]]:
        """Lengths around a block, too."""
        return super().cases() | {"length": lengths_around(16), "dtype": DTYPES}

    def refusals(self) -> dict[str, Refusal]:
        """Of each tensor and of p."""
        found = {
            "an x of integers": Refusal("x is torch.int32", {"x": lambda x: x.int()}),
            "a mask of bytes": Refusal(
                "keep is torch.uint8.*; it must be torch.bool",
                {"keep": torch.Tensor.byte},
            ),
            "the device of the mask": Refusal(
                "keep is .*meta; it must", {"keep": lambda x: x.to("meta")}
            ),
            "the shape of the mask": Refusal(
                r"keep has shape \[3, 2\]; it must be x's \[2, 3\]",
                {"keep": lambda x: x.view(3, 2)},
            ),
            "strides of x": Refusal(
                r"x has strides \(1, 2\); it must", {"x": lambda x: x.T.contiguous().T}
            ),
            "strides of the mask": Refusal(
                r"keep has strides \(0, 1\); it must",
                {"keep": lambda x: x[:1].expand(2, 3)},
            ),
        }
        for p in (-0.1, 1.1, float("nan")):
            said = f"p is {p}; it must be from 0 to 1"
            found[f"p={p}"] = Refusal(said, options={"p": p})
        return found

    def test_every_length(self, length: int, dtype: torch.dtype, device: str) -> None:
        x = guarded(normal((length,), dtype, device))
        keep = mask(length, device=device)
        before = x.clone(), keep.clone()
        y = self.check(x, keep)["y"]
        assert (y.shape, y.is_contiguous()) == (x.shape, True)
        assert torch.equal(x, before[0])
        assert torch.equal(keep, before[1])

    @pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4, 5)])
    def test_every_shape(self, shape: tuple[int, ...], device: str) -> None:
        x = guarded(normal(shape, torch.float32, device))
        assert self.check(x, mask(*shape, device=device))["y"].shape == shape

    @pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
    def test_empty(self, shape: tuple[int, ...], device: str) -> None:
        x = torch.zeros(shape, device=device)
        assert self.run(x, x > 0)["y"].shape == shape

    def test_every_block_size(self, device: str) -> None:
        x, keep = normal((300,), torch.float32, device), mask(300, device=device)
        first, *others = (self.check(x, keep, blocks=b)["y"] for b in self.blocks)
        assert all(torch.equal(y, first) for y in others)

    @pytest.mark.parametrize("p", [0.0, 1.0, 1e-7, 0.1, 0.999])
    def test_every_p(self, p: float, dtype: torch.dtype, device: str) -> None:
        x, keep = normal((40,), dtype, device), mask(40, device=device)
        y = self.check(x, keep, p=p)["y"]
        if p in (0.0, 1.0):
            assert torch.equal(y, torch.where(keep, x * (1 - p), 0.0))

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_special_values(self, value: float, device: str) -> None:
        x = torch.full((40,), value, device=device)
        keep = mask(40, device=device)
        y = self.run(x, keep)["y"]
        assert torch.equal(y == 0, ~keep)
        torch.testing.assert_close(y[keep], x[keep], equal_nan=True)

    @pytest.mark.parametrize("stays", [True, False])
    def test_all_or_nothing_stays(self, stays: bool, device: str) -> None:
        x = normal((40,), torch.float32, device)
        y = self.check(x, torch.full((40,), stays, device=device))["y"]
        assert (y != 0).all() == stays

    def test_the_gradient_is_the_same_function(
        self, dtype: torch.dtype, device: str
    ) -> None:
        x, dy = (normal((5, 40), dtype, device, seed=seed) for seed in (0, 1))
        keep = mask(5, 40, device=device)
        expected, own = (
            torch.autograd.grad(of(leaf, keep), leaf, dy.to(leaf.dtype))[0]
            for of, leaf in (
                (self.reference, x.double().requires_grad_()),
                (self.baseline, x.clone().requires_grad_()),
            )
        )
        found = self.run(dy, keep)["y"]
        self.compare({"dx": found}, {"dx": expected}, {"dx": own})

    @pytest.mark.large
    def test_offsets_beyond_31_bits(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        size, last = 2**31 + 60, slice(2**31, None)
        if INTERPRETED:
            x, y = (untouched(size, torch.float16) for _ in range(2))
            keep = untouched(size, torch.bool)
        else:
            x = torch.zeros(size, dtype=torch.float16, device=device)
            keep = torch.zeros(size, dtype=torch.bool, device=device)
        x[last] = normal((60,), torch.float16, device)
        keep[last] = mask(60, device=device)
        if INTERPRETED:
            start_at(2**31 // 64, monkeypatch)
            options = {"SCALE": 1 / (1 - P), "COMPUTE": stored_dropout.tl.float32}
            stored_dropout.dropout_kernel[(1,)](x, keep, y, size, **options, BLOCK=64)
        else:
            y = self.run(x, keep, blocks={})["y"]
        inputs = x[last], keep[last]
        expected, own = self.reference(*inputs), self.baseline(*inputs)
        self.compare(y[last], expected, own)
        assert not y[:1000].any()

    @pytest.mark.gpu
    @pytest.mark.parametrize("half", DTYPES[:3], ids=name)
    def test_many_elements(self, half: torch.dtype) -> None:
        x = torch.randn(3000, 4001, device="cuda").to(half)
        self.check(x, torch.rand(x.shape, device="cuda") >= P, blocks={})
