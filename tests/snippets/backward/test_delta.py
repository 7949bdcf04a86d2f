"""Tests of snippets/backward/delta.py: a kernel for the row-dots of o and do."""

import mmap
from collections.abc import Iterable
from typing import Any

import pytest
import torch
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snippets.backward import delta
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import (
    HALVES,
    HEAD_LAYOUTS,
    INF,
    NAN,
    STRUCTURED,
    far_apart,
    name,
    normal,
)
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each

DTYPES = (*HALVES, torch.float32)
LAYOUTS = list(HEAD_LAYOUTS.values())


def pair(
    shape: tuple[int, ...], dtype: torch.dtype, device: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """o, do and dlse of normal values."""
    o, do = (normal(shape, dtype, device, seed=seed) for seed in (0, 1))
    return o, do, normal(shape[:-1], torch.float32, device, seed=2)


def row_dot(
    o: torch.Tensor, do: torch.Tensor, dlse: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """What is right, in float64 or float32."""
    found = (o.to(dtype) * do.to(dtype)).sum(dim=-1)
    return found if dlse is None else found - dlse.to(dtype)


class TestDelta(Suite):
    """Against PyTorch's sum of products."""

    function = staticmethod(delta.row_dot)
    outputs = ("delta",)
    blocks = ({"block_m": 16}, {"block_m": 1}, {"block_m": 64}, {})

    def example(self, device: str) -> Named:
        """o, do and dlse."""
        inputs = pair((2, 3, 5, 16), torch.float32, device)
        return dict(zip(("o", "do", "dlse"), inputs, strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other."""
        found = {
            **of_each(("o",), "one dimension more", lambda x: x[None], "has 5.*must"),
            **of_each(("o",), "one dimension less", lambda x: x[0], "has 3.*must"),
            **of_each(
                ("do", "dlse"),
                "the device",
                lambda x: x.to("meta"),
                ".*meta.*; it must",
            ),
            **of_each(
                ("do", "dlse"),
                "the dtype",
                lambda x: x.half(),
                r"is torch.float16.*must",
            ),
        }
        for dtype in (torch.float64, torch.int32):
            change = dict.fromkeys(("o", "do"), lambda x, to=dtype: x.to(to))
            found[name(dtype)] = Refusal(f"o is {dtype}; it must", change)
        for size in (0, 257):
            wide = dict.fromkeys(
                ("o", "do"), lambda x, n=size: x[..., :1].expand(2, 3, 5, n)
            )
            found[f"head_dim {size}"] = Refusal(f"o has head_dim {size}; it must", wide)
        many = {
            "o": lambda x: x[:1, :1].expand(2, 32768, 5, 16),
            "do": lambda x: x[:1, :1].expand(2, 32768, 5, 16),
            "dlse": lambda x: x[:1, :1].expand(2, 32768, 5),
        }
        found["65536 heads"] = Refusal(r"o has 2 \* 32768 heads; it must.*65535", many)
        for axis, what in enumerate(("batch", "heads", "seq", "head_dim")):
            for tensor in ("do", "dlse")[: 2 if axis < 3 else 1]:
                change = {tensor: lambda x, axis=axis: x.narrow(axis, 0, 1)}
                said = rf"{tensor} is \[.*1.*\]; it must be \[2, 3, 5"
                found[f"the {what} of {tensor}"] = Refusal(said, change)
        return found

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {"layout": HEAD_LAYOUTS, "dtype": DTYPES}

    def check(
        self,
        o: torch.Tensor,
        do: torch.Tensor,
        dlse: torch.Tensor | None = None,
        blocks: dict[str, int] | None = None,
    ) -> torch.Tensor:
        """Hold the row-dots against the rule; returns them."""
        found = self.run(o, do, dlse=dlse, blocks=blocks)["delta"]
        assert found.is_contiguous()
        expected = row_dot(o, do, dlse, torch.float64)
        check_accuracy(found, expected, row_dot(o, do, dlse, torch.float32))
        return found

    test_launches_on_the_device_of_its_inputs = None  # dlse is given by name

    @pytest.mark.parametrize("seq_q", [1, 3, 15, 16, 17, 50])
    def test_every_length(self, seq_q: int, device: str) -> None:
        o, do, dlse = map(guarded, pair((2, 3, seq_q, 16), torch.float32, device))
        self.check(o, do)
        self.check(o, do, dlse)

    def test_dlse_is_subtracted(self, device: str) -> None:
        o, do, dlse = pair((2, 3, 5, 16), torch.float32, device)
        found = self.check(torch.zeros_like(o), do, dlse)
        assert torch.equal(found, -dlse)

    @pytest.mark.parametrize("axis", [0, 1, 2, 3])
    def test_no_two_strides_alike(self, axis: int, device: str) -> None:
        # Each with gaps of its own along one axis, and two with another order of axes.
        o, do, dlse = pair((2, 3, 20, 16), torch.float32, device)
        o = o.repeat_interleave(2, dim=axis)
        o = guarded(o[(slice(None),) * axis + (slice(None, None, 2),)])
        do = guarded(do.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0))
        dlse = guarded(dlse.permute(1, 2, 0).contiguous().permute(2, 0, 1))
        self.check(o, do, dlse)
        self.check(do, o, dlse)

    def test_every_layout(self, layout: str, device: str) -> None:
        # Two layouts at once, so that the strides of one do not fit the other.
        first = list(HEAD_LAYOUTS).index(layout)
        o, do, dlse = pair((2, 4, 20, 16), torch.float32, device)
        o, do = guarded(LAYOUTS[(first + 4) % len(LAYOUTS)](o)), LAYOUTS[first](do)
        do = guarded(do)
        given = dlse[:1].expand(dlse.shape)
        before = [x.clone() for x in (o, do, given)]
        self.check(o, do, given)
        for x, copy in zip((o, do, given), before, strict=True):
            assert torch.equal(x, copy), "an input was written to"

    def test_the_gradient_of_a_sum_has_strides_of_0(self, device: str) -> None:
        o = normal((2, 3, 20, 16), torch.float32, device).requires_grad_()
        grads = []
        o.register_hook(grads.append)
        o.sum().backward()
        (do,) = grads
        assert do.stride() == (0, 0, 0, 0)
        self.check(o.detach(), do)

    def test_every_dtype(self, dtype: torch.dtype, device: str) -> None:
        self.check(*map(guarded, pair((2, 3, 19, 24), dtype, device)))

    @pytest.mark.parametrize("head_dim", [1, 3, 17, 40, 64, 111, 128, 192, 256])
    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        # What lies beside a row is NaN.
        o, do, _ = pair((1, 2, 9, head_dim), torch.float16, device)
        room = o.new_full((2, 1, 2, 9, head_dim + 5), NAN)
        room[0, ..., :head_dim], room[1, ..., :head_dim] = o, do
        o, do = room[..., :head_dim]
        assert self.check(o, do).isfinite().all()

    @pytest.mark.parametrize("blocks", blocks, ids=str)
    def test_every_block_size(self, blocks: dict[str, int], device: str) -> None:
        o, do, dlse = map(guarded, pair((2, 2, 70, 40), torch.float16, device))
        self.check(o, do, dlse, blocks)

    @pytest.mark.parametrize("head_dim", [16, 256])
    def test_the_tile_it_chooses(
        self, head_dim: int, dtype: torch.dtype, device: str
    ) -> None:
        o, do, dlse = map(guarded, pair((1, 2, 70, head_dim), dtype, device))
        self.check(o, do, dlse, {})

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, device: str) -> None:
        o, do, dlse = pair((2, 3, 20, 24), torch.float16, device)
        self.check(STRUCTURED[kind](o), do, dlse)
        self.check(o, STRUCTURED[kind](do), dlse)

    def test_halves_are_summed_in_float32(self, device: str) -> None:
        # In float16 the sum would stop at 2048, and a product of 1e5 would be infinite.
        o = torch.ones((1, 1, 3, 256), dtype=torch.float16, device=device)
        found = self.check(o * 300, o * 400)
        assert (found == 256 * 300 * 400).all()

    @pytest.mark.parametrize("value", [NAN, INF])
    def test_special_values_stay_in_their_row(self, value: float, device: str) -> None:
        for which in range(2):
            o, do, dlse = pair((1, 2, 20, 16), torch.float32, device)
            (o, do)[which][0, 1, 17, 3] = value
            found = self.check(o, do, dlse)
            assert (~found.isfinite()).sum() == 1

    @pytest.mark.parametrize("shape", [(0, 2, 5, 16), (2, 0, 5, 16), (2, 2, 0, 16)])
    def test_empty(self, shape: tuple[int, ...], device: str) -> None:
        o, do, dlse = pair(shape, torch.float32, device)
        assert self.check(o, do, dlse).shape == shape[:3]

    # Few: a GPU compiles the kernel for each pair of layouts.
    @settings(
        suppress_health_check=[HealthCheck.differing_executors],
        max_examples=min(20, settings.default.max_examples),
    )
    @given(
        batch=st.integers(1, 2),
        heads=st.integers(1, 3),
        seq_q=st.integers(8, 40),  # of few numbers the order of addition decides
        dtype=st.sampled_from(DTYPES),
        where=st.tuples(*2 * [st.integers(0, len(LAYOUTS) - 1)]),
        has_dlse=st.booleans(),
        seed=st.integers(0, 2**20),
    )
    def test_any_input(
        self,
        device: str,
        batch: int,
        heads: int,
        seq_q: int,
        dtype: torch.dtype,
        where: tuple[int, int],
        has_dlse: bool,
        seed: int,
    ) -> None:
        shape = batch, heads, seq_q, 16
        o, do = (
            LAYOUTS[pick](normal(shape, dtype, device, seed=2 * seed + step))
            for step, pick in enumerate(where)
        )
        dlse = normal(shape[:3], torch.float32, device, seed=seed)
        self.check(o, do, dlse if has_dlse else None)

    # Beyond 2^31 elements.

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        for axis in range(4):
            shape = (3, 3, 3, 3)
            o = far_apart(shape, axis, torch.float16, device)
            do = normal(shape, torch.float16, device, seed=1)
            self.check(o, do)
            self.check(do, o)

    @pytest.mark.large
    def test_offsets_of_dlse_beyond_31_bits(self, device: str) -> None:
        o, do, _ = pair((3, 3, 3, 16), torch.float16, device)
        for axis in range(3):
            self.check(o, do, far_apart((3, 3, 3), axis, torch.float32, device))

    @pytest.mark.large
    def test_delta_beyond_31_bits(self, device: str) -> None:
        # Three heads of 2^30 rows, of which a program for each does the first 16. On
        # the CPU the memory of all others is never touched.
        rows = 2**30
        numbers = 2 * rows + 16
        if device == "cpu":
            memory = mmap.mmap(-1, 4 * numbers)
            out = torch.frombuffer(memory, dtype=torch.float32)
        else:
            out = torch.empty(numbers, dtype=torch.float32, device=device)
        o, do, dlse = pair((1, 3, 1, 16), torch.float16, device)
        o, do, dlse = (
            o.expand(1, 3, rows, 16),
            do.expand(1, 3, rows, 16),
            dlse.expand(1, 3, rows),
        )
        delta.row_dot_kernel[(1, 3)](
            o, do, dlse, out, *o.stride(), *do.stride(), *dlse.stride(), 3, rows,
            HEAD_DIM=16, BLOCK_M=16, BLOCK_D=16, INDEX=tl.int32,
        )  # fmt: skip
        found = torch.stack([out[head * rows :][:16] for head in range(3)])[None]
        some = o[:, :, :16], do[:, :, :16], dlse[:, :, :16]
        expected, own = (row_dot(*some, x) for x in (torch.float64, torch.float32))
        check_accuracy(found, expected, own)

    @pytest.mark.gpu
    @pytest.mark.parametrize("head_dim", [40, 64, 128, 256])
    def test_many_rows(self, head_dim: int, dtype: torch.dtype, device: str) -> None:
        # As a model lays them out: [batch, seq, heads, head_dim].
        o, do, dlse = pair((3, 1025, 5, head_dim), dtype, device)
        o, do, dlse = (x.transpose(1, 2) for x in (o, do, dlse))
        self.check(o, do, dlse, {})

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, device: str) -> None:
        shape = 2021, 32, 521, 64
        o, do = (
            torch.empty(shape, dtype=torch.bfloat16, device=device).normal_()
            for _ in range(2)
        )
        found = self.run(o, do, blocks={})["delta"]
        assert found.isfinite().all()
        for some in (slice(1), slice(1010, 1011), slice(-1, None)):
            expected, own = (
                row_dot(o[some], do[some], None, x)
                for x in (torch.float64, torch.float32)
            )
            check_accuracy(found[some], expected, own)


def test_launches_on_the_device_of_o(device: str) -> None:
    o, do, dlse = pair((2, 3, 5, 16), torch.float32, device)
    check_where_it_launches(delta.row_dot, o, do, dlse=dlse)
