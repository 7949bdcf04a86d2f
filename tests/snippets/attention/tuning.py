"""To try an autotuned kernel with one configuration: the tests choose it, not a clock.

The autotuner times every configuration once for each dtype and head_dim, and compiles
it first: too long for every test, and its choice would change what a test tries.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
from typing import Any

import pytest
import torch
import triton


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


def tuned_at(
    module: ModuleType, dtypes: Iterable[torch.dtype], device: str
) -> list[torch.dtype]:
    """At which of these calls the autotuner times configurations. Nothing is launched.

    The choice for one dtype may not fit into shared memory for another.
    """
    kernel = module.attention_kernel
    timed: list[triton.Config] = []
    found = []

    def bench(*_: object, config: triton.Config, **__: object) -> float:
        timed.append(config)
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "configs", module.CONFIGS[:2])
        patch.setattr(kernel, "cache", {})
        patch.setattr(kernel, "early_config_prune", lambda configs, *_, **__: configs)
        patch.setattr(kernel, "_bench", bench)
        patch.setattr(kernel.fn, "run", lambda *_, **__: None)
        for dtype in dtypes:
            x = torch.zeros((1, 1, 16, 16), dtype=dtype, device=device)
            module.attention(x, x, x)
            if timed:
                assert timed == module.CONFIGS[:2]
                found.append(dtype)
            timed.clear()
    return found
