"""Tests of snippets/hopper/postprocess.py."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch

from snippets.hopper import postprocess
from tests.harness.inputs import (
    HALVES,
    HEAD_LAYOUTS,
    lengths_around,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.backward.suite import resized, strides


def places(cols: int) -> torch.Tensor:
    """Where wgmma's order has each number of a tile, [64, cols]."""
    row, col = torch.arange(64)[:, None], torch.arange(cols)
    warp, below, row = row // 16, row % 16 // 8, row % 8
    half, col = col // (cols // 2), col % (cols // 2)
    sixteen, square, lane, number = col // 16, col % 16 // 8, col % 8 // 2, col % 2
    place = half * (cols // 32) + sixteen
    for many, each in ((2, below), (4, warp), (8, row), (4, lane), (2, square)):
        place = place * many + each
    return place * 2 + number


def summed(dq: torch.Tensor) -> torch.Tensor:
    """dq as the threads of the backward kernel leave it; NaN where it has none."""
    batch, heads, seq_q, head_dim = dq.shape
    cols, blocks = 64 if head_dim <= 64 else 128, -(-seq_q // 64)
    whole = dq.new_full((batch, heads, blocks * 64, cols), float("nan"))
    whole[:, :, :seq_q, :head_dim] = dq
    tiles = whole.reshape(batch, heads, blocks, 64 * cols)
    order = places(cols).flatten().argsort().to(dq.device)
    return tiles[..., order].float()


class TestPostprocess(Suite):
    """Against sums whose order is written down here a second time."""

    function = staticmethod(postprocess.postprocess)
    outputs = ("dq",)
    asked = ("scale",)

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {"dtype": HALVES, "layout": HEAD_LAYOUTS}

    def inputs(
        self, seq_q: int, head_dim: int, device: str, dtype: torch.dtype = HALVES[0]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums, and q, of which nobody reads the values."""
        dq = normal((2, 3, seq_q, head_dim), torch.float32, device)
        return summed(dq), torch.full_like(dq, float("nan"), dtype=dtype)

    def example(self, device: str) -> Named:
        """One call's."""
        return dict(zip(("dq_sum", "q"), self.inputs(70, 40, device), strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other."""
        found = {
            **of_each(("q",), "one dimension more", lambda x: x[None], "is .* 5-D; it"),
            **of_each(("q",), "float32", lambda x: x.float(), "is torch.float32.*must"),
        }
        for cols in (0, 12, 136):
            change = {"q": lambda x, n=cols: resized(x, 3, n)}
            found[f"head_dim {cols}"] = Refusal(f"q has head_dim {cols}; it m", change)
        sums = {
            "the dtype": lambda x: x.double(),
            "the device": lambda x: x.to("meta"),
            "one batch": lambda x: x[:1],
            "one head": lambda x: x[:, :1],
            "one tile": lambda x: x[:, :, :1],
            "fewer columns": lambda x: x[..., : 64 * 32],
            "gaps": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
        }
        for what, change in sums.items():
            found[f"{what} of dq_sum"] = Refusal(
                "dq_sum is.*; it must be.*float32.*2, 3, 2, 4096", {"dq_sum": change}
            )
        return found

    def order(self, dq_sum: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """The sums in rows and columns."""
        order = places(dq_sum.shape[3] // 64)
        dq = dq_sum[..., order.to(q.device)].flatten(2, 3)
        return dq[:, :, : q.shape[2], : q.shape[3]]

    def scaled(
        self, dq_sum: torch.Tensor, q: torch.Tensor, scale: float | None
    ) -> torch.Tensor:
        """dq, of the dtype of the sums."""
        scale = q.shape[3] ** -0.5 if scale is None else scale
        return self.order(dq_sum, q) * scale

    def reference(
        self, dq_sum: torch.Tensor, q: torch.Tensor, scale: float | None = None
    ) -> torch.Tensor:
        """In float64."""
        return self.scaled(dq_sum.double(), q, scale)

    def baseline(
        self, dq_sum: torch.Tensor, q: torch.Tensor, scale: float | None = None
    ) -> torch.Tensor:
        """In float32, rounded."""
        return self.scaled(dq_sum, q, scale).to(q.dtype)

    @pytest.mark.parametrize("head_dim", [64, 128])
    def test_every_number_has_its_place(self, head_dim: int, device: str) -> None:
        # Whole numbers that float16 has: each once in every 2048 places.
        dq_sum = torch.arange(64.0 * head_dim, device=device) % 2048
        q = torch.empty((1, 1, 64, head_dim), dtype=torch.float16, device=device)
        dq = self.function(dq_sum.reshape(1, 1, 1, -1), q, scale=1.0)
        assert torch.equal(dq[0, 0].float().cpu(), places(head_dim).float() % 2048)
        dq_sum = torch.arange(64.0 * head_dim, device=device) // 2048
        dq = self.function(dq_sum.reshape(1, 1, 1, -1), q, scale=1.0)
        assert torch.equal(dq[0, 0].int().cpu(), places(head_dim).int() // 2048)

    @pytest.mark.parametrize("seq_q", [1, 3, 63, 64, 65, 130])
    def test_every_length(self, seq_q: int, device: str) -> None:
        for head_dim in (40, 104):
            self.check(*map(guarded, self.inputs(seq_q, head_dim, device)))

    @pytest.mark.parametrize("head_dim", [8, 24, 64, 72, 128])
    def test_every_head_dim(
        self, head_dim: int, dtype: torch.dtype, device: str
    ) -> None:
        self.check(*map(guarded, self.inputs(70, head_dim, device, dtype)))

    @pytest.mark.parametrize("scale", [0.0, 0.3, -2.0])
    def test_scale(self, scale: float, device: str) -> None:
        self.check(*self.inputs(70, 40, device), scale=scale)

    def test_it_is_rounded_once(self, device: str) -> None:
        # Sums beyond float16's range, and a scale that brings them back.
        dq_sum, q = self.inputs(70, 64, device)
        found = self.check(dq_sum * 2**20, q, scale=2.0**-20)
        assert torch.equal(found["dq"], self.order(dq_sum, q).half())

    def test_every_layout(self, layout: str, device: str) -> None:
        dq_sum, q = self.inputs(20, 40, device)
        q = HEAD_LAYOUTS[layout](q)
        found = self.check(dq_sum, q)["dq"]
        wanted = torch.empty_like(q)
        if wanted.stride(3) == 1:
            assert strides(found) == strides(wanted)
        assert found.data_ptr() != q.data_ptr()

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_empty(self, axis: int, device: str) -> None:
        dq_sum, q = self.inputs(5, 40, device)
        self.check(dq_sum.narrow(axis, 0, 0), q.narrow(axis, 0, 0))

    # Beyond 2^31 elements.

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, device: str) -> None:
        dq_sum = torch.empty((1025, 32, 16, 64 * 64), device=device).normal_()
        q = torch.empty((1025, 32, 1024, 64), dtype=torch.bfloat16, device=device)
        found = self.run(dq_sum, q)["dq"]
        for some in (slice(1), slice(512, 513), slice(-1, None)):
            inputs = dq_sum[some], q[some]
            self.compare(found[some], self.reference(*inputs), self.baseline(*inputs))

    @pytest.mark.gpu
    @pytest.mark.parametrize("seq_q", lengths_around(64))
    def test_many_rows(self, seq_q: int, dtype: torch.dtype, device: str) -> None:
        # As a model lays them out: [batch, seq, heads, head_dim].
        for head_dim in (64, 128):
            dq_sum, q = self.inputs(seq_q, head_dim, device, dtype)
            self.check(dq_sum, q.transpose(1, 2).contiguous().transpose(1, 2))
