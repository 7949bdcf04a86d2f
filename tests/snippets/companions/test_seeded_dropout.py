"""Tests of snippets/companions/seeded_dropout.py."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.companions import seeded_dropout
from tests.harness.inputs import (
    DTYPES,
    HEAD_LAYOUTS,
    INF,
    INTERPRETED,
    NAN,
    far_apart,
    lengths_around,
    name,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite
from tests.snippets.companions.dropped import (
    Unread,
    check_share,
    check_uncorrelated,
    start_at,
    untouched,
)
from tests.snippets.companions.philox import (
    KNOWN,
    halves,
    kept_elements,
    kept_share,
    philox,
)

P, SEED = 0.3, 2026
SEEDS = (0, 1, 2**31 - 1, 2**32 + 7, 2**63 - 1)
# A view of another layout: every one has the elements of x in x's order.
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **HEAD_LAYOUTS,
    "all axes turned": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "one element": lambda x: x[:1, :1, :1, :1].expand(x.shape),
    "gaps on every axis": lambda x: torch.nn.functional.pad(
        x, (1, 2, 1, 2, 1, 0, 0, 1)
    )[:-1, 1:, 1:-2, 1:-2],
}


@functools.wraps(seeded_dropout.dropout)
def dropout(x: torch.Tensor, **options: Any) -> torch.Tensor:
    """With a p and a seed, if none is given."""
    return seeded_dropout.dropout(x, **{"p": P, "seed": SEED, **options})


def kept(size: int, device: str, *, p: float = 0.5, **options: Any) -> torch.Tensor:
    """[size], bool: what stays of so many elements."""
    return dropout(torch.ones(size, device=device), p=p, **options) != 0


class TestSeededDropout(Suite):
    function = staticmethod(dropout)
    outputs = ("y",)
    asked = ("p", "seed")
    blocks = ({"block": 64}, {"block": 8}, {"block": 16}, {"block": 1024}, {})
    test_refuses_to_lose_a_gradient = None  # it has one

    def example(self, device: str) -> Named:
        """x."""
        return {"x": normal((2, 3), torch.float32, device)}

    def kept(self, x: torch.Tensor, p: float, seed: int | torch.Tensor) -> Any:
        """The mask, of x's shape."""
        size, seed = x.numel(), int(seed)
        found = kept_elements(size, p=p, seed=seed, device=x.device.type)
        return found.view(x.shape)

    def reference(self, x: torch.Tensor, p: float = P, seed: Any = SEED) -> Any:
        """In float64."""
        scale = 1 / kept_share(p) if kept_share(p) else 0.0
        return torch.where(self.kept(x, p, seed), x.double() * scale, 0.0)

    def baseline(self, x: torch.Tensor, p: float = P, seed: Any = SEED) -> Any:
        """In the dtype of x."""
        scale = 1 / kept_share(p) if kept_share(p) else 0.0
        return torch.where(self.kept(x, p, seed), x * scale, 0.0)

    def run(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """The output, contiguous."""
        found = super().run(*inputs, **options)
        assert found["y"].shape == inputs[0].shape
        assert found["y"].is_contiguous()
        return found

    def cases(self) -> dict[str, Iterable[Any]]:
        """Lengths around a block, too."""
        return super().cases() | {"length": lengths_around(64), "dtype": DTYPES}

    def refusals(self) -> dict[str, Refusal]:
        """Of the dtype, of p and of seeds."""
        found = {}
        for dtype in (torch.int32, torch.complex64):
            said, change = f"x is {dtype}; it must", {"x": lambda x, d=dtype: x.to(d)}
            found[name(dtype)] = Refusal(said, change)
        for p in (-0.1, 1.1, NAN):
            said = f"p is {p}; it must be from 0 to 1"
            found[f"p={p}"] = Refusal(said, options={"p": p})
        one = torch.zeros((), dtype=torch.int64)
        seeds = {
            "negative": -1,
            "too large": 2**63,
            "no integer": 1.5,
            "text": "7",
            "none": None,
            "another dtype": one.int(),
            "two numbers": one.expand(2),
            "another device": one.to("meta"),
        }
        for what, seed in seeds.items():
            said = "seed is .*; it must be an int from 0 to"
            found[f"seed: {what}"] = Refusal(said, options={"seed": seed})
        return found

    def test_every_length(self, length: int, dtype: torch.dtype, device: str) -> None:
        x = guarded(normal((length,), dtype, device))
        before = x.clone()
        self.check(x)
        assert torch.equal(x, before)

    def test_the_bits_do_not_depend_on_the_tile(self, device: str) -> None:
        x = normal((300,), torch.float32, device)
        first, *others = (self.check(x, blocks=b)["y"] for b in self.blocks)
        assert all(torch.equal(y, first) for y in others)

    @pytest.mark.parametrize("layout", VIEWS)
    def test_the_bits_do_not_depend_on_the_layout(
        self, layout: str, device: str
    ) -> None:
        x = guarded(VIEWS[layout](normal((2, 3, 5, 7), torch.float32, device)))
        y = self.check(x)["y"]
        assert torch.equal(y, self.run(x.contiguous())["y"])

    def test_the_bits_do_not_depend_on_the_dtype(self, device: str) -> None:
        ones = (torch.ones(200, dtype=dtype, device=device) for dtype in DTYPES)
        first, *others = (self.run(x)["y"] != 0 for x in ones)
        assert all(torch.equal(keep, first) for keep in others)

    @pytest.mark.parametrize(
        "shape", [(), (1,), (1, 1), (3, 1, 5), (2, 2, 2, 2, 2, 2), (0,), (3, 0)]
    )
    def test_every_shape(self, shape: tuple[int, ...], device: str) -> None:
        self.check(guarded(normal(shape, torch.float32, device)))

    @pytest.mark.parametrize("p", [0.0, 1.0, 1e-7, 2**-16, 0.1, 0.5, 0.999, 1 - 1e-7])
    def test_every_p(self, p: float, dtype: torch.dtype, device: str) -> None:
        x = normal((300,), dtype, device)
        y = self.check(x, p=p)["y"]
        if p < 2**-17:
            assert torch.equal(y, x)
        if p > 1 - 2**-17:
            assert (y == 0).all()

    def test_the_number_that_is_the_threshold_stays(self, device: str) -> None:
        p = halves(SEED, (4, 0, 0, 0))[3] / 65536
        x = torch.ones(40, device=device)
        assert self.check(x, p=p)["y"][4 * 8 + 3] != 0

    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    @pytest.mark.parametrize("p", [P, 1.0])
    def test_special_values(self, value: float, p: float, device: str) -> None:
        x = torch.full((300,), value, device=device)
        y, keep = self.run(x, p=p)["y"], self.kept(x, p, SEED)
        assert torch.equal(y == 0, ~keep)
        torch.testing.assert_close(y[keep], x[keep], equal_nan=True)

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("as_tensor", [False, True])
    def test_every_seed(self, seed: int, as_tensor: bool, device: str) -> None:
        given = torch.tensor(seed, device=device) if as_tensor else seed
        self.check(normal((300,), torch.float32, device), seed=given)

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.large
    def test_strides_beyond_31_bits(self, axis: int, device: str) -> None:
        self.check(far_apart((4, 4), axis, torch.float16, device))

    @pytest.mark.large
    def test_indices_beyond_32_bits(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # 2^35 elements have 2^32 counters. The GPU tries fewer, as many as it can hold.
        first = 2**35 if INTERPRETED else 2**32
        size, x = first + 60, torch.ones(1, dtype=torch.float16, device=device)
        if INTERPRETED:
            y = untouched(size, torch.float16)
            start_at(first // 64, monkeypatch)
            seeded_dropout.dropout_kernel[(1,)](
                x, y, SEED, round(P * 65536), size, (), (0,),
                COMPUTE=seeded_dropout.tl.float32, BLOCK=64,
            )  # fmt: skip
        else:
            y = self.function(x.expand(size))
        keep = kept_elements(60, p=P, seed=SEED, device=device, first=first)
        assert torch.equal(y[first:] != 0, keep)
        assert not torch.equal(keep, self.kept(x.expand(60), P, SEED))

    # A GPU compiles the kernel for each kind of axes.
    @settings(max_examples=min(15, settings.default.max_examples))
    @given(
        shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
        order=st.randoms(use_true_random=False),
        steps=st.lists(st.integers(1, 3), min_size=4, max_size=4),
        p=st.floats(0, 1),
        seed=st.integers(0, 2**63 - 1),
    )
    def test_any_layout(
        self,
        device: str,
        shape: list[int],
        order: Any,
        steps: list[int],
        p: float,
        seed: int,
    ) -> None:
        axes = list(range(len(shape)))
        order.shuffle(axes)
        wide = [n * step for n, step in zip(shape, steps, strict=False)]
        x = normal([wide[axis] for axis in axes], torch.float32, device, seed=1)
        x = x.permute([axes.index(axis) for axis in range(len(shape))])
        x = x[tuple(slice(None, None, step) for step in steps[: len(shape)])]
        assert list(x.shape) == shape
        self.check(guarded(x), p=p, seed=seed)


class TestGradient:
    """Against PyTorch's gradient with the same mask."""

    def check(self, x: torch.Tensor, dy: torch.Tensor, **options: Any) -> torch.Tensor:
        """The gradient of x, held against the rule; returns it."""
        suite, leaf = TestSeededDropout(), x.detach().requires_grad_()
        found = torch.autograd.grad(dropout(leaf, **options), leaf, dy)[0]
        options.pop("block", None)
        exact, own = x.double().requires_grad_(), x.clone().requires_grad_()
        expected = suite.reference(exact, **options)
        baseline = suite.baseline(own, **options)
        suite.compare(
            {"dx": found},
            {"dx": torch.autograd.grad(expected, exact, dy.double())[0]},
            {"dx": torch.autograd.grad(baseline, own, dy)[0]},
        )
        return found

    @pytest.mark.parametrize("dtype", DTYPES, ids=name)
    @pytest.mark.parametrize("p", [0.0, 0.1, 0.9, 1.0])
    def test_every_p(self, p: float, dtype: torch.dtype, device: str) -> None:
        x, dy = (normal((5, 60), dtype, device, seed=seed) for seed in (0, 1))
        dx = self.check(x, guarded(dy), p=p, block=64)
        assert (dx == 0).float().mean().item() == pytest.approx(p, abs=0.1)

    @pytest.mark.parametrize("layout", VIEWS)
    def test_every_layout(self, layout: str, device: str) -> None:
        x, dy = (normal((2, 3, 5, 7), torch.float32, device, seed=i) for i in (0, 1))
        self.check(x, guarded(VIEWS[layout](dy)), block=64)
        self.check(VIEWS["transposed"](x), guarded(VIEWS[layout](dy)), block=64)

    def test_the_gradient_of_a_sum_is_the_mask(self, device: str) -> None:
        x = torch.ones(3, 50, device=device, requires_grad=True)
        y = dropout(x, block=16)
        y.sum().backward()
        assert torch.equal(x.grad, y)

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("as_tensor", [False, True])
    def test_both_passes_have_the_seed(
        self, seed: int, as_tensor: bool, device: str
    ) -> None:
        given = torch.tensor(seed, device=device) if as_tensor else seed
        x, dy = (normal((200,), torch.float32, device, seed=i) for i in (0, 1))
        self.check(x, dy, seed=given)

    def test_gradcheck_twice(self, device: str) -> None:
        x = normal((2, 5), torch.float64, device).requires_grad_()
        for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            assert check(lambda x: dropout(x, block=8), (x,))

    def test_no_tensor_is_saved(self, device: str) -> None:
        y = dropout(torch.ones(50, device=device, requires_grad=True))
        assert y.grad_fn.saved_tensors == ()

    def test_a_seed_that_has_changed_is_an_error(self, device: str) -> None:
        seed = torch.tensor(3, device=device)
        y = dropout(torch.ones(50, device=device, requires_grad=True), seed=seed)
        seed += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_the_seed_is_read_when_the_kernel_runs(self, device: str) -> None:
        x = torch.ones(50, device=device, requires_grad=True)
        with Unread():
            dropout(x, seed=torch.tensor(3, device=device)).sum().backward()

    @pytest.mark.gpu
    def test_a_graph_draws_anew(self) -> None:
        x = torch.ones(5000, device="cuda", requires_grad=True)
        seed = torch.tensor(0, device="cuda")

        def step() -> tuple[torch.Tensor, torch.Tensor]:
            y = dropout(x, seed=seed)
            return y, torch.autograd.grad(y.sum(), x)[0]

        warm = torch.cuda.Stream()
        with torch.cuda.stream(warm):
            step()
        torch.cuda.current_stream().wait_stream(warm)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y, dx = step()
        for number in (5, 6, 5):
            seed.fill_(number)
            graph.replay()
            assert torch.equal(y, dropout(x.detach(), seed=number))
            assert torch.equal(dx, y)

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", DTYPES[:3], ids=name)
    def test_many_elements(self, dtype: torch.dtype) -> None:
        x, dy = (torch.randn(3000, 1001, device="cuda").to(dtype) for _ in range(2))
        self.check(x, dy)


class TestMask:
    """What stays looks as if it were drawn by chance."""

    size = 2**16

    @pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
    def test_as_many_stay_as_should(self, p: float, device: str) -> None:
        for seed in range(3):
            check_share(kept(self.size, device, p=p, seed=seed), p)

    def test_neighbours_are_uncorrelated(self, device: str) -> None:
        keep = kept(self.size, device)
        for lag in (*range(1, 18), 64, 1024, 4096):
            check_uncorrelated(keep[lag:], keep[:-lag])

    def test_each_of_the_eight_numbers_is_fair(self, device: str) -> None:
        keep = kept(self.size, device, p=0.25).view(-1, 8)
        for column in range(8):
            check_share(keep[:, column], 0.25)

    @pytest.mark.parametrize("other", [1, 2**32, 2**62])
    def test_two_seeds_are_uncorrelated(self, other: int, device: str) -> None:
        a, b = (kept(self.size, device, seed=seed) for seed in (0, other))
        assert not torch.equal(a, b)
        check_uncorrelated(a, b)


def test_the_reference_is_philox() -> None:
    for key, counter, expected in KNOWN:
        assert [int(word) for word in philox(key, counter)] == list(expected)
