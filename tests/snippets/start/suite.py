"""What holds of every kernel that works on the elements of vectors."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded

DTYPES = [
    torch.float16,
    pytest.param(torch.bfloat16, marks=pytest.mark.gpu),  # the interpreter adds bits
    torch.float32,
    torch.float64,
]
lengths = pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 200])
dtypes = pytest.mark.parametrize("dtype", DTYPES)


class AddTests:
    """The suite of x + y."""

    function: Callable[..., torch.Tensor]
    # The bad inputs that only some refuse, made of a vector of 4, and what is said.
    refused: ClassVar[list[tuple[Callable, str]]] = []

    @dtypes
    @lengths
    def test_lengths(self, size: int, dtype: torch.dtype, device: str) -> None:
        x, y = (guarded(each) for each in normal((2, size), dtype, device))
        out = self.function(x, y, block=16)
        check_accuracy(out, x.double() + y.double(), x + y)
        assert out.is_contiguous()

    def test_nan_and_infinities(self, device: str) -> None:
        nan, inf = float("nan"), float("inf")
        x = torch.tensor([nan, 1.0, inf, inf, -inf, 1.0], device=device)
        y = torch.tensor([1.0, nan, inf, -inf, 1.0, 2.0], device=device)
        torch.testing.assert_close(self.function(x, y), x + y, equal_nan=True)

    def test_empty(self, device: str) -> None:
        x = torch.zeros(0, device=device)
        assert self.function(x, x).shape == (0,)

    def test_refuses(self, device: str) -> None:
        for bad, said in [
            (lambda x: (x.view(2, 2), x), "x has 2 dimensions"),
            (lambda x: (x.int(), x.int()), "x is torch.int32"),
            (lambda x: (x, x[:3]), r"y is \[3\]"),
            (lambda x: (x, x.half()), r"y is \[4\] torch.float16"),
            (lambda x: (x, x.view(2, 2)), r"y is \[2, 2\]"),
            *self.refused,
        ]:
            with pytest.raises(ValueError, match=f"^{said}"):
                self.function(*bad(torch.zeros(4, device=device)))

    def test_refuses_to_lose_a_gradient(self, device: str) -> None:
        x = torch.ones(4, device=device)
        needs = x.clone().requires_grad_()
        for inputs, tensor in (((needs, x), "x"), ((x, needs), "y")):
            with pytest.raises(ValueError, match=f"^{tensor} requires a gradient"):
                self.function(*inputs)
            with torch.no_grad():
                assert (self.function(*inputs) == 2).all()

    def test_launches_on_the_device_of_its_inputs(self, device: str) -> None:
        x = torch.ones(4, device=device)
        check_where_it_launches(self.function, x, x)
