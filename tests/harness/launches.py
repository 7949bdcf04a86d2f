"""On which device a snippet launches its kernels."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.runtime.autotuner import Autotuner


def check_where_it_launches(
    function: Callable[..., Any], *inputs: Any, **options: Any
) -> None:
    """Every launch of the file of `function` is made on the device of its inputs.

    Kernels are what the file calls `..._kernel`.
    """
    current: list[torch.device] = []
    launched: list[list[torch.device]] = []

    @contextmanager
    def device_of(x: torch.Tensor) -> Iterator[None]:
        current.append(x.device)
        yield
        current.pop()

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def launch(*args: Any, **options: Any) -> Any:
            launched.append(current.copy())
            return run(*args, **options)

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "device_of", device_of)
        for word, kernel in inspect.unwrap(function).__globals__.items():
            if word.endswith("_kernel"):
                # A tile that is given goes past the autotuner.
                kernel = kernel.fn if isinstance(kernel, Autotuner) else kernel
                patch.setattr(kernel, "run", watched(kernel.run))
        function(*inputs, **options)
    assert launched
    assert all(devices == [inputs[0].device] for devices in launched)


def pretend_gpu(monkeypatch: pytest.MonkeyPatch, **properties: int) -> None:
    """What PyTorch says of every GPU from now on: a Hopper with these properties."""
    if torch.cuda.is_available():
        torch.cuda.init()  # which looks at the real ones
    gpu = SimpleNamespace(major=9, minor=0, **properties)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
