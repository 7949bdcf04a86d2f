"""The suite of the matrix products: a b^T."""

from typing import Any, ClassVar

import pytest
import torch

from tests.harness.inputs import (
    HALVES,
    LAYOUTS,
    STRUCTURED,
    UNALIGNED,
    far_apart,
    lengths_around,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.hopper.gluon import (
    check_what_is_filled,
    in_rows_of_16_bytes,
)

# Each length of each axis, beside ordinary ones of the others; tiles are 64 each way.
ORDINARY = (100, 72, 136)
SIZES = sorted(
    {
        (*ORDINARY[:axis], length, *ORDINARY[axis + 1 :])
        for axis in range(3)
        for length in lengths_around(64)
    }
)
TILES = [{"block_m": m, "block_n": n} for m in (64, 128) for n in (64, 128, 256)]


class ProductTests(Suite):
    """What holds of a product of matrices in 16 bits.

    Attributes:
        stages: options to try beside tiles.
    """

    outputs = ("c",)
    blocks = ({"block_m": 64, "block_n": 64}, *TILES[1:], {})
    stages: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def example(self, device: str) -> Named:
        """Of the ordinary size."""
        return dict(zip("ab", self.inputs(*ORDINARY, HALVES[0], device), strict=True))

    def inputs(
        self, m: int, n: int, k: int, dtype: torch.dtype, device: str
    ) -> list[torch.Tensor]:
        """a and b of normal values, with NaN around all rows."""
        sizes = enumerate(((m, k), (n, k)))
        each = (normal(size, dtype, device, seed=seed) for seed, size in sizes)
        return [guarded(in_rows_of_16_bytes(x)) for x in each]

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """In float64."""
        return a.double() @ b.double().T

    def baseline(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """By cuBLAS."""
        return a @ b.T

    def refusals(self) -> dict[str, Refusal]:
        """Other dtypes, shapes, and what the TMA unit does not take."""
        strides = "has strides.*; it must.*16 bytes"
        found = {
            "float32": Refusal(
                "a is torch.float32; it must be float16",
                dict.fromkeys("ab", lambda x: x.float()),
            ),
            "two dtypes": Refusal(
                "b is torch.bfloat16.*; it must be torch.float16",
                {"b": lambda x: x.bfloat16()},
            ),
            "another k": Refusal(
                r"b has shape \[72, 64\]; it must be \[any, 136\]",
                {"b": lambda x: x[:, :64]},
            ),
        }
        found |= of_each("ab", "a vector", lambda x: x[0], "is .* 1 dim.*; it must be")
        for what, change in {
            "turned columns": lambda x: x.T.contiguous().T,
            "columns apart": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
            "odd rows": lambda x: torch.cat([x, x[:, :1]], dim=1)[:, :136],
            "an odd address": lambda x: torch.cat([x[0, :1], x.flatten()])[1:].view(
                x.shape
            ),
        }.items():
            found |= of_each("ab", what, change, strides)
        return found

    def cases(self) -> dict[str, Any]:
        """Sizes, dtypes, tiles and layouts."""
        return super().cases() | {
            "size": SIZES,
            "dtype": HALVES,
            "tile": self.blocks,
            "stage": self.stages,
            "layout": sorted(LAYOUTS.keys() - UNALIGNED),
            "structure": STRUCTURED,
        }

    @pytest.mark.gpu
    def test_sizes(
        self, size: tuple[int, int, int], dtype: torch.dtype, device: str
    ) -> None:
        self.check(*self.inputs(*size, dtype, device))

    @pytest.mark.gpu
    @pytest.mark.parametrize("n", lengths_around(64))
    def test_fills_the_last_16_bytes_of_each_row(self, n: int, device: str) -> None:
        inputs = self.inputs(100, n, 136, HALVES[0], device)
        check_what_is_filled(lambda: self.run(*inputs)["c"])

    @pytest.mark.gpu
    def test_tiles(
        self, tile: dict[str, int], stage: dict[str, int], device: str
    ) -> None:
        inputs = self.inputs(300, 500, 1000, torch.bfloat16, device)
        self.check(*inputs, blocks=tile | stage)

    @pytest.mark.gpu
    def test_fewer_turns_than_stages(self, stage: dict[str, int], device: str) -> None:
        for k in (8, 72, 136, 200):
            inputs = self.inputs(64, 64, k, torch.float16, device)
            self.check(*inputs, blocks=self.blocks[0] | stage)

    @pytest.mark.gpu
    @pytest.mark.parametrize("which", [0, 1])
    def test_layouts(self, which: int, layout: str, device: str) -> None:
        inputs = [normal((104, 136), torch.float16, device, seed=i) for i in range(2)]
        inputs[which] = guarded(LAYOUTS[layout](inputs[which]))
        self.check(*inputs)

    @pytest.mark.gpu
    def test_structured_values(self, structure: str, device: str) -> None:
        a, b = self.inputs(200, 136, 136, torch.bfloat16, device)
        self.check(in_rows_of_16_bytes(STRUCTURED[structure](a)), b)

    @pytest.mark.gpu
    def test_every_run_gives_the_same_bits(self, device: str) -> None:
        # Tiles come round many times: one that is read or replaced too early shows.
        a, b = self.inputs(1000, 1000, 4096, torch.bfloat16, device)
        for tile in ({}, self.blocks[0]):
            first = self.check(a, b, blocks=tile)["c"]
            for _ in range(50):
                assert torch.equal(self.run(a, b, blocks=tile)["c"], first)

    @pytest.mark.gpu
    @pytest.mark.large
    @pytest.mark.parametrize("which", [0, 1])
    def test_offsets_beyond_31_bits(self, which: int, device: str) -> None:
        inputs = [normal((4, 64), torch.float16, device, seed=i) for i in range(2)]
        inputs[which] = far_apart((4, 64), 0, torch.float16, device)
        self.check(*inputs)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_results(self, device: str) -> None:
        n = 2**31 // 16384 + 64
        a, b = self.inputs(16384, n, 64, torch.float16, device)
        c = self.run(a, b, blocks={})["c"]
        rows = torch.tensor([0, 1, 8191, 16382, 16383], device=device)
        self.compare(c[rows], self.reference(a[rows], b), self.baseline(a[rows], b))

    @pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 8), (5, 0, 8), (5, 16, 0)])
    def test_empty(self, m: int, n: int, k: int, device: str) -> None:
        a, b = (torch.ones(x, k, dtype=torch.float16, device=device) for x in (m, n))
        c = self.run(a, b)["c"]
        assert c.shape == (m, n)
        assert not c.any()

    test_refuses_to_lose_a_gradient = pytest.mark.gpu(
        Suite.test_refuses_to_lose_a_gradient
    )
    test_launches_on_the_device_of_its_inputs = pytest.mark.gpu(
        Suite.test_launches_on_the_device_of_its_inputs
    )
