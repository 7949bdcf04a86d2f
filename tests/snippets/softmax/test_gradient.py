"""Tests of snippets/softmax/gradient.py."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.softmax import gradient
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import DTYPES, LAYOUTS, far_apart, lengths_around, normal
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.harness.waiting import take_turns
from tests.snippets.softmax.suite import SoftmaxTests, every_dtype, reference

INF = float("inf")
NAN = float("nan")


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a row wait for each other, on the interpreter too."""
    take_turns(monkeypatch)


def grad(softmax: Callable, x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """The gradient of a softmax at x, given that of its output."""
    x = x.detach().requires_grad_()
    (dx,) = torch.autograd.grad(softmax(x), x, dy)
    return dx


def torch_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


class TestForward(SoftmaxTests):
    function = staticmethod(gradient.softmax)
    test_refuses_to_lose_a_gradient = None  # it has one
    blocks = ({"chunk_cols": 64}, {"chunk_cols": 16}, {"chunk_cols": 512}, {})


class TestBackward:
    """Against PyTorch's gradient, in float64 and in the dtype itself."""

    @staticmethod
    def check(
        x: torch.Tensor,
        dy: torch.Tensor,
        chunk_cols: int | None = 64,
    ) -> None:
        dx = grad(lambda x: gradient.softmax(x, chunk_cols=chunk_cols), x, dy)
        assert dx.is_contiguous()
        expected = grad(torch_softmax, x.double(), dy.double())
        own = grad(torch_softmax, x, dy)
        check_accuracy({"dx": dx}, {"dx": expected}, {"dx": own})

    @every_dtype
    @pytest.mark.parametrize("cols", lengths_around(64))
    def test_every_length(
        self,
        cols: int,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        x = guarded(normal((3, cols), dtype, device))
        dy = guarded(normal((3, cols), dtype, device, seed=1))
        self.check(x, dy)

    @pytest.mark.parametrize("chunk_cols", [1, 16, 64, 128, 512, None])
    def test_every_block_size(self, chunk_cols: int | None, device: str) -> None:
        x, dy = (normal((2, 130), torch.float32, device, seed=seed) for seed in (0, 1))
        self.check(x, dy, chunk_cols)

    @pytest.mark.parametrize("rows", [7, 16, 33])
    def test_several_rows_to_a_program(self, rows: int, device: str) -> None:
        # 16 rows of 64 columns to a program.
        x = normal((rows, 50), torch.float32, device)
        dy = guarded(normal((rows, 50), torch.float32, device, seed=1))
        self.check(x, dy)

    @pytest.mark.parametrize("tiles", [2, 3, 5, 33])
    def test_every_tile_counts(self, tiles: int, device: str) -> None:
        x = normal((3, 8 * tiles - 3), torch.float32, device)
        dy = normal(x.shape, torch.float32, device, seed=1)
        for place in range(tiles):
            dy[:, min(8 * place + 4, x.shape[1] - 1)] += 10 * (place % 7)
        self.check(x, guarded(dy), chunk_cols=8)

    def test_more_tiles_than_multiprocessors(self, device: str) -> None:
        x, dy = (normal((1, 300), torch.float32, device, seed=seed) for seed in (0, 1))
        self.check(x, dy, chunk_cols=2)

    def test_no_sum_looks_unpublished(self, device: str) -> None:
        # The sum of a tile is 0, whose bits are all 0; or a NaN, whose bits are all 1.
        x, dy = (normal((3, 200), torch.float64, device, seed=seed) for seed in (0, 1))
        dy[0, 64:128] = 0
        dy[1, 130] = torch.tensor(-1).view(torch.float64)
        self.check(x, dy)

    @pytest.mark.parametrize("cols", [16384, 16385, 40_000])
    def test_one_tile_or_more(self, cols: int, device: str) -> None:
        x, dy = (normal((2, cols), torch.float32, device, seed=seed) for seed in (0, 1))
        self.check(x, dy, chunk_cols=None)

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
    @pytest.mark.parametrize("cols", [131072, 1048576, 1048576 + 40, 3_000_000])
    def test_long_rows(self, cols: int, dtype: torch.dtype) -> None:
        x = torch.randn((67, cols), device="cuda").to(dtype)
        dy = torch.randn((67, cols), device="cuda").to(dtype)
        few = slice(None, None, 33)
        expected = grad(torch_softmax, x[few].double(), dy[few].double())
        own = grad(torch_softmax, x[few], dy[few])
        for _ in range(5):  # programs meet in another order each time
            dx = grad(gradient.softmax, x, dy)
            check_accuracy({"dx": dx[few]}, {"dx": expected}, {"dx": own})
            assert dx.isfinite().all()

    # With dy the same in all columns dx is 0, and the rule would allow no rounding:
    # the next test has this layout.
    @pytest.mark.parametrize("layout", [x for x in LAYOUTS if x != "expanded columns"])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
    def test_every_layout_of_dy(
        self,
        layout: str,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        x = normal((5, 100), dtype, device)
        dy = guarded(LAYOUTS[layout](normal((5, 100), dtype, device, seed=1)))
        self.check(x, dy)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_the_gradient_of_a_sum_has_strides_of_0(
        self, dtype: torch.dtype, device: str
    ) -> None:
        x = normal((3, 100), dtype, device).requires_grad_()
        weights = normal((3, 1), dtype, device, seed=1)
        (gradient.softmax(x, chunk_cols=32) * weights).sum().backward()
        # The rows sum to 1 whatever x is.
        assert x.grad.abs().max() < 4 * torch.finfo(dtype).eps

    def test_x_is_transposed(self, device: str) -> None:
        x = normal((100, 4), torch.float32, device).T
        self.check(x, normal((4, 100), torch.float32, device, seed=1))

    @every_dtype
    @pytest.mark.parametrize("scale", [30.0, 1e4])
    def test_large_values(self, scale: float, dtype: torch.dtype, device: str) -> None:
        x = (normal((3, 200), torch.float64, device) * scale).to(dtype)
        self.check(x, normal((3, 200), dtype, device, seed=1))

    @pytest.mark.parametrize("value", [-INF, NAN, INF])
    @pytest.mark.parametrize("where", [slice(0, 1), slice(0, 150), slice(None)])
    def test_special_values(self, value: float, where: slice, device: str) -> None:
        x = normal((3, 200), torch.float32, device)
        x[1, where] = value
        self.check(x, normal((3, 200), torch.float32, device, seed=1))

    def test_nan_in_dy_stays_in_its_row(self, device: str) -> None:
        dy = normal((3, 200), torch.float32, device, seed=1)
        dy[1, 199] = NAN
        self.check(normal((3, 200), torch.float32, device), dy)

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
    def test_empty(self, shape: tuple[int, int], device: str) -> None:
        x = torch.zeros(shape, device=device)
        assert grad(gradient.softmax, x, x).shape == shape

    def test_dy_beyond_31_bits(self, device: str) -> None:
        x = normal((4, 4), torch.float16, device)
        for axis in (0, 1):
            dy = far_apart((4, 4), axis, torch.float16, device)
            self.check(x, dy)

    @given(
        rows=st.integers(1, 3),
        cols=st.integers(1, 100),
        chunk_cols=st.sampled_from([16, 64, 128]),
        dtype=st.sampled_from(DTYPES),
        seed=st.integers(0, 2**20),
    )
    def test_any_row(
        self,
        device: str,
        rows: int,
        cols: int,
        chunk_cols: int,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        x = normal((rows, cols), dtype, device, seed=seed)
        dy = normal((rows, cols), dtype, device, seed=seed + 1)
        self.check(x, dy, chunk_cols)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self) -> None:
        cols = 4096
        rows = 2**31 // cols + 3
        shape = (rows, cols)
        x = torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_()
        dy = torch.empty_like(x).normal_()
        dx = grad(gradient.softmax, x, dy)
        for some in (slice(2), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            near = x[some], dy[some]
            expected = grad(torch_softmax, *(t.double() for t in near))
            check_accuracy(dx[some], expected, grad(torch_softmax, *near))


@pytest.mark.parametrize("chunk_cols", [2, 8])
def test_gradcheck(chunk_cols: int, device: str) -> None:
    x = normal((2, 5), torch.float64, device).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: gradient.softmax(x, chunk_cols=chunk_cols), (x,)
    )


def test_the_gradient_of_the_gradient_is_refused(device: str) -> None:
    x = normal((2, 5), torch.float64, device).requires_grad_()
    y = gradient.softmax(x)
    (dx,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_nothing_but_y_is_saved(device: str) -> None:
    x = normal((2, 5), torch.float64, device).requires_grad_()
    y = gradient.softmax(x)
    (saved,) = y.grad_fn.saved_tensors
    assert torch.equal(saved, y)


def test_the_reference_is_the_gradient(device: str) -> None:
    x = normal((3, 50), torch.float64, device)
    dy = normal((3, 50), torch.float64, device, seed=1)
    expected = grad(torch_softmax, x, dy)
    found = gradient.reference_backward(reference(x), dy)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)


def test_backward_launches_on_the_device_of_y(device: str) -> None:
    y = normal((2, 5), torch.float32, device)
    ctx = SimpleNamespace(saved_tensors=(y,), chunk_cols=8, device=y.device)
    check_where_it_launches(gradient.Softmax.backward, ctx, y)
