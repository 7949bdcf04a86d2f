"""To try an autotuned kernel with one configuration: the tests choose it, not a clock.

The autotuner times every configuration once for each dtype and head_dim, and compiles
it first: too long for every test, and its choice would change what a test tries.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import pytest
import torch
import triton

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import qkv
from tests.snippets.attention.reference import baseline, reference


def with_blocks(module: ModuleType) -> Callable[..., Any]:
    """The `attention` of an autotuned file, which then takes block_m and block_n too.

    Without them its tiles are 128 by 64; in float32, those of the first configuration.
    """

    @wraps(module.attention)
    def attention(
        q: torch.Tensor,
        *tensors: torch.Tensor,
        block_m: int | None = None,
        block_n: int | None = None,
        **options: Any,
    ) -> Any:
        kernel = module.attention_kernel
        config = kernel.configs[0]
        if block_m or block_n or q.dtype != torch.float32:
            block_m = block_m or 128
            config = triton.Config(
                {"BLOCK_M": block_m, "BLOCK_N": block_n or 64},
                num_warps=8 if block_m > 64 else 4,
                num_stages=2,
                pre_hook=config.pre_hook,
            )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "configs", [config])
            return module.attention(q, *tensors, **options)

    return attention


def tuned_to(module: ModuleType, *tensors: torch.Tensor, **options: Any) -> Any:
    """Call `attention` with all configurations; (its result, the one it chose)."""
    kernel = module.attention_kernel
    kernel.cache.clear()
    return module.attention(*tensors, **options), kernel.best_config


class TuningTests:
    """What an autotuned file must do besides its mathematics.

    Attributes:
        module: the file; it takes q, k and v of any size of element, scale and causal.
    """

    module: ModuleType

    @pytest.mark.parametrize("scale", [1e-46, 2.0**-127, 3e38])
    def test_refuses_a_scale_that_is_none_in_float32(
        self, scale: float, device: str
    ) -> None:
        inputs = qkv((1, 1), (1, 1), 5, 40, 16, torch.float32, device)
        with pytest.raises(ValueError, match=r"^scale is .*in float32"):
            self.module.attention(*inputs, scale=scale)

    def test_each_size_of_element_is_tuned(self, device: str) -> None:
        # The choice for one size may not fit into shared memory for another.
        kernel, configs = self.module.attention_kernel, self.module.CONFIGS[:2]
        timed: list[triton.Config] = []

        def bench(*_: object, config: triton.Config, **__: object) -> float:
            timed.append(config)
            return 1.0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "configs", configs)
            patch.setattr(kernel, "cache", {})
            patch.setattr(kernel, "early_config_prune", lambda found, *_, **__: found)
            patch.setattr(kernel, "_bench", bench)
            patch.setattr(kernel.fn, "run", lambda *_, **__: None)
            for expected in (configs, []):  # at the first call only
                for dtype in (torch.float16, torch.float32):
                    timed.clear()
                    x = torch.zeros((1, 1, 16, 16), dtype=dtype, device=device)
                    self.module.attention(x, x, x)
                    assert timed == expected

    @pytest.mark.gpu
    @pytest.mark.parametrize("head_dim", [64, 128, 256])
    def test_what_the_autotuner_chooses(self, head_dim: int, device: str) -> None:
        inputs = qkv((1, 8), (1, 2), 500, 700, head_dim, torch.bfloat16, device)
        (o, _), config = tuned_to(self.module, *inputs, causal=True)
        assert config in self.module.CONFIGS
        expected, own = (f(*inputs, causal=True)[0] for f in (reference, baseline))
        check_accuracy(o, expected, own)
