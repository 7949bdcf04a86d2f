"""The suites of the rungs that an autotuner tunes, and that descriptors feed.

Tests choose the tile, not a clock: to time every configuration takes too long for each
of them, and what it chose would change what a test tries.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch
import triton

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import NAN, qkv
from tests.harness.launches import pretend_gpu
from tests.harness.suite import Refusal, of_each
from tests.snippets.attention.reference import baseline, reference
from tests.snippets.attention.suite import AttentionTests, resized


def with_blocks(module: ModuleType) -> Callable[..., Any]:
    """The `attention` of an autotuned file, which then takes block_m and block_n too.

    Without them its tiles are 128 by 64; in float32, where they compile for minutes,
    those of the first configuration.
    """

    @wraps(module.attention)
    def attention(
        *tensors: torch.Tensor,
        block_m: int | None = None,
        block_n: int | None = None,
        **options: Any,
    ) -> Any:
        given = {x.dtype for x in (*tensors, *options.values()) if hasattr(x, "dtype")}
        m, n = (32, 32) if torch.float32 in given and len(given) == 1 else (128, 64)
        tile = {
            "BLOCK_M": block_m or m,
            "BLOCK_N": block_n or n,
            "num_stages": 2,
        }
        tile["num_warps"] = 8 if tile["BLOCK_M"] > 64 else 4
        return module.attention(*tensors, tile=tile, **options)

    return attention


def tuned_to(module: ModuleType, *tensors: torch.Tensor, **options: Any) -> Any:
    """Call `attention` with all configurations; (its result, the one it chose)."""
    kernel = module.attention_kernel
    kernel.cache.clear()
    return module.attention(*tensors, **options), kernel.best_config


class TunedTests(AttentionTests):
    """What holds of a rung in base 2 whose function is made by `with_blocks`."""

    scales = (0.3, 1.0)
    most_rows = None
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"scale": (0.0, -0.5, NAN)}

    def refusals(self) -> dict[str, Refusal]:
        """Also of a scale whose gradient would be lost."""
        tensor = {"scale": torch.tensor(0.3)}
        said = "scale is tensor.*; it must"
        return super().refusals() | {"a tensor": Refusal(said, options=tensor)}


class DescriptorTests(TunedTests):
    """What also holds of a rung whose tiles are fetched by descriptors."""

    aligned = True
    head_dims = (16, 32, 40, 64, 96, 128, 160, 192, 224, 256)

    def refusals(self) -> dict[str, Refusal]:
        """Also of what does not begin at multiples of 16 bytes."""
        found = super().refusals()
        said = "has strides.*; it must.*16 bytes"
        for what, change in {
            "turned columns": lambda x: x.mT.contiguous().mT,
            "columns apart": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
            "odd rows": lambda x: torch.cat([x, x[..., :1]], dim=-1)[..., :16],
            "an odd address": lambda x: torch.cat([x.flatten()[:1], x.flatten()])[
                1:
            ].view(x.shape),
        }.items():
            found |= of_each("qkv", what, change, said)
        short = dict.fromkeys("qkv", lambda x: resized(x, -1, 14).contiguous())
        found["rows of 56 bytes"] = Refusal("q .*14; it must.*16 bytes", short)
        return found


class TuningTests:
    """What the autotuner of a file must do.

    Attributes:
        module: the file; it takes q, k and v of 16 and of 32 bits, and causal.
    """

    module: ModuleType

    @pytest.fixture
    def timed(self, monkeypatch: pytest.MonkeyPatch) -> list[triton.Config]:
        """The configurations that the autotuner has timed; none of them ran."""
        kernel, found = self.module.attention_kernel, []

        def bench(*_: object, config: triton.Config, **__: object) -> float:
            found.append(config)
            return 1.0

        pretend_gpu(
            monkeypatch,
            multi_processor_count=2,
        )
        monkeypatch.setattr(kernel, "cache", {})
        monkeypatch.setattr(kernel, "_bench", bench)
        monkeypatch.setattr(kernel.fn, "run", lambda *_, **__: None)
        return found

    def call(self, seq: int, head_dim: int, dtype: torch.dtype, device: str) -> None:
        """Of zeros, which are not read."""
        x = torch.zeros((1, 1, seq, head_dim), dtype=dtype, device=device)
        self.module.attention(x, x, x)

    def test_half_precision_is_tuned_at_the_first_call(
        self, timed: list[triton.Config], device: str
    ) -> None:
        # In float32 most configurations compile for minutes, or do not fit.
        for dtype, expected in (
            (torch.float32, []),
            (torch.float16, self.module.CONFIGS),
            (torch.float16, []),
        ):
            timed.clear()
            self.call(16, 16, dtype, device)
            assert timed == expected

    def test_lengths_of_about_the_same_size_share_a_choice(
        self, timed: list[triton.Config], device: str
    ) -> None:
        # A small first call must not choose for all, nor each length for itself.
        for seq, anew in (
            *((16, True), (500, False), (600, True), (1000, False)),
            *((5000, True), (20000, False), (512, False)),
        ):
            timed.clear()
            self.call(seq, 16, torch.float16, device)
            assert bool(timed) == anew

    @pytest.mark.gpu
    @pytest.mark.parametrize("head_dim", [64, 128, 256])
    def test_what_the_autotuner_chooses(self, head_dim: int, device: str) -> None:
        inputs = qkv((1, 8), (1, 2), 500, 700, head_dim, torch.bfloat16, device)
        (o, _), config = tuned_to(self.module, *inputs, causal=True)
        assert config in self.module.CONFIGS
        expected, own = (f(*inputs, causal=True)[0] for f in (reference, baseline))
        check_accuracy(o, expected, own)
