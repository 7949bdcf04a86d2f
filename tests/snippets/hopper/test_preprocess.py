"""Tests of snippets/hopper/preprocess.py."""

import mmap
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.hopper import preprocess
from tests.harness.inputs import (
    HALVES,
    HEAD_LAYOUTS,
    INF,
    far_apart,
    lengths_around,
    normal,
)
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.backward.suite import resized

LOG2_E = 1.4426950408889634
LAYOUTS = list(HEAD_LAYOUTS.values())


class TestPreprocess(Suite):
    """Against PyTorch's sum of products, and its product with log2(e)."""

    function = staticmethod(preprocess.preprocess)
    outputs = ("lse2", "delta")
    blocks = ({"block_m": 16}, {"block_m": 32}, {})
    asked = ("dlse",)

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {"dtype": HALVES, "layout": HEAD_LAYOUTS}

    def inputs(
        self,
        seq_q: int,
        device: str,
        dtype: torch.dtype = torch.float16,
        cols: int = 16,
    ) -> list[torch.Tensor]:
        """o, do and lse, and dlse."""
        shape = 2, 3, seq_q, cols
        o, do = (normal(shape, dtype, device, seed=seed) for seed in (0, 1))
        of_rows = (normal(shape[:3], torch.float32, device, seed=s) for s in (2, 3))
        return [o, do, *of_rows]

    def example(self, device: str) -> Named:
        """One call's."""
        names = "o", "do", "lse", "dlse"
        return dict(zip(names, self.inputs(5, device), strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other."""
        others = "do", "lse", "dlse"
        found = {
            **of_each(("o",), "one dimension more", lambda x: x[None], "is .* 5-D; it"),
            **of_each(("o",), "float32", lambda x: x.float(), "is torch.float32.*must"),
            **of_each(others, "the device", lambda x: x.to("meta"), "is.*meta.*; it m"),
            **of_each(
                others, "the dtype", lambda x: x.double(), "is torch.float64.*; "
            ),
            **of_each(others, "one row", lambda x: x[:, :, :1], r"is.*1.*; it must.*5"),
            **of_each(others, "one head", lambda x: x[:, :1], r"is.*1.*; it must.*3"),
        }
        for cols in (0, 12, 264):
            change = dict.fromkeys(("o", "do"), lambda x, n=cols: resized(x, 3, n))
            said = f"o has head_dim {cols}; it must be 8"
            found[f"head_dim {cols}"] = Refusal(said, change)
        return found

    def test_launches_on_the_device_of_its_inputs(self, device: str) -> None:
        check_where_it_launches(self.function, *self.inputs(5, device)[:3])

    def named(self, results: Any) -> Named:
        """The two lines."""
        if isinstance(results, dict):
            return results
        return dict(zip(self.outputs, results.unbind(2), strict=True))

    def run(
        self,
        *inputs: torch.Tensor,
        blocks: dict[str, int] | None = None,
        **asked: Any,
    ) -> Named:
        """The lines, which lie as the TMA unit needs them."""
        blocks = self.blocks[0] if blocks is None else blocks
        rows = self.function(*inputs, **blocks, **asked)
        if rows.numel():
            assert rows.stride(3) == 1
            assert all(stride % 4 == 0 for stride in rows.stride()[:3])
        return self.named(rows)

    def rows(
        self, o: torch.Tensor, do: torch.Tensor, lse: torch.Tensor,
        dlse: torch.Tensor | None, dtype: torch.dtype,
    ) -> torch.Tensor:  # fmt: skip
        """What is right, in float64 or float32."""
        delta = (o.to(dtype) * do.to(dtype)).sum(dim=-1)
        delta = delta if dlse is None else delta - dlse.to(dtype)
        lse2 = (lse.to(dtype) * LOG2_E).where(lse != -INF, INF)
        return torch.stack([lse2, delta], dim=2)

    def reference(
        self, *inputs: torch.Tensor, dlse: torch.Tensor | None = None
    ) -> torch.Tensor:
        """In float64."""
        return self.rows(*inputs, dlse, torch.float64)

    def baseline(
        self, *inputs: torch.Tensor, dlse: torch.Tensor | None = None
    ) -> torch.Tensor:
        """In float32."""
        return self.rows(*inputs, dlse, torch.float32)

    @pytest.mark.parametrize("seq_q", [1, 3, 4, 15, 16, 17, 50])
    def test_every_length(self, seq_q: int, device: str) -> None:
        o, do, lse, dlse = map(guarded, self.inputs(seq_q, device))
        self.check(o, do, lse)
        self.check(o, do, lse, dlse=dlse)

    @pytest.mark.parametrize("blocks", blocks, ids=str)
    def test_every_block_size(
        self, blocks: dict[str, int], dtype: torch.dtype, device: str
    ) -> None:
        o, do, lse, dlse = map(guarded, self.inputs(70, device, dtype, 40))
        self.check(o, do, lse, dlse=dlse, blocks=blocks)

    @pytest.mark.parametrize("cols", [8, 24, 64, 128, 136, 256])
    def test_every_head_dim(self, cols: int, dtype: torch.dtype, device: str) -> None:
        o, do, lse, dlse = map(guarded, self.inputs(19, device, dtype, cols))
        self.check(o, do, lse, dlse=dlse)

    def test_every_layout(self, layout: str, device: str) -> None:
        # Two layouts at once, so that the strides of one do not fit the other.
        first = list(HEAD_LAYOUTS).index(layout)
        o, do, lse, dlse = self.inputs(20, device, cols=24)
        views = LAYOUTS[first], LAYOUTS[(first + 4) % len(LAYOUTS)]
        o, do = (guarded(view(x)) for view, x in zip(views, (o, do), strict=True))
        lse = guarded(lse.transpose(1, 2).contiguous().transpose(1, 2))
        self.check(o, do, lse, dlse=dlse[:1].expand(dlse.shape))

    def test_the_gradient_of_a_sum_has_strides_of_0(self, device: str) -> None:
        o, do, lse, _ = self.inputs(20, device)
        self.check(o, do[:1, :1, :1, :1].expand(o.shape), lse)

    def test_a_row_that_saw_nothing(self, device: str) -> None:
        o, do, lse, dlse = self.inputs(20, device)
        lse[0, 1, 17], lse[1, :, :16] = -INF, -INF
        found = self.check(o, do, lse, dlse=dlse)
        assert (found["lse2"] == INF).sum() == 1 + 3 * 16

    def test_halves_are_summed_in_float32(self, device: str) -> None:
        # In float16 the sum would stop at 2048, and a product of 1e5 would be infinite.
        ones = torch.ones((2, 3, 3, 256), dtype=torch.float16, device=device)
        lse = torch.zeros((2, 3, 3), device=device)
        found = self.check(ones * 300, ones * 400, lse)
        assert (found["delta"] == 256 * 300 * 400).all()

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_empty(self, axis: int, device: str) -> None:
        inputs = [x.narrow(axis, 0, 0) for x in self.inputs(5, device)]
        self.check(*inputs[:3], dlse=inputs[3])

    # Beyond 2^31 elements.

    @pytest.mark.large
    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_offsets_beyond_31_bits(self, axis: int, device: str) -> None:
        _, do, lse, dlse = self.inputs(3, device)
        o = far_apart(do.shape, axis, torch.float16, device)
        self.check(o, do, lse, dlse=dlse)
        self.check(do, o, lse, dlse=dlse)

    @pytest.mark.large
    def test_lines_beyond_31_bits(self, device: str) -> None:
        # On the CPU the memory between the lines is never touched.
        line = 2**30
        inputs = self.inputs(16, device)[:3]
        o, do, lse = (x[:1] for x in inputs)
        if device == "cpu":
            memory = mmap.mmap(-1, 4 * (5 * line + 16))
            out = torch.frombuffer(memory, dtype=torch.float32)
        else:
            out = torch.empty(5 * line + 16, device=device)
        descs = [TensorDescriptor.from_tensor(x, [1, 1, 16, 16]) for x in (o, do)]
        preprocess.preprocess_kernel[(3,)](*descs, lse, None, out, 3, 16, line, 16, 16)
        found = torch.stack([out[n * line :][:16] for n in range(6)]).view(1, 3, 2, 16)
        self.compare(found, self.reference(o, do, lse), self.baseline(o, do, lse))

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, device: str) -> None:
        shape = 2021, 32, 521, 64
        o, do = (
            torch.empty(shape, dtype=torch.bfloat16, device=device).normal_()
            for _ in range(2)
        )
        lse = torch.empty(shape[:3], device=device).normal_()
        found = self.run(o, do, lse, blocks={})
        for some in (slice(1), slice(1010, 1011), slice(-1, None)):
            inputs = o[some], do[some], lse[some]
            rows = torch.stack([x[some] for x in found.values()], dim=2)
            self.compare(rows, self.reference(*inputs), self.baseline(*inputs))

    @pytest.mark.gpu
    @pytest.mark.parametrize("seq_q", lengths_around(64))
    def test_many_rows(self, seq_q: int, dtype: torch.dtype, device: str) -> None:
        # As a model lays them out: [batch, seq, heads, head_dim].
        o, do = (
            normal((3, seq_q, 5, 128), dtype, device, seed=seed).transpose(1, 2)
            for seed in (0, 1)
        )
        lse = normal((3, 5, seq_q), torch.float32, device, seed=2)
        self.check(o, do, lse, blocks={})
