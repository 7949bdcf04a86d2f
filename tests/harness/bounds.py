"""Every load and store of every launch stays inside the tensors passed to it.

Triton's interpreter turns each access into addresses and a mask. Here they are held
against the elements of the launch's arguments: not against their storage, so leaving
a sliced view is seen although the memory behind it exists.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime import interpreter


class OutOfBounds(Exception):
    """A kernel touches memory outside the tensors passed to its launch."""


class Extent:
    """The addresses of one tensor's elements.

    Attributes:
        name: the kernel's parameter.
        tensor: its argument.
    """

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        self.name = name
        self.tensor = tensor
        self.start = tensor.data_ptr()
        reach = [
            (size - 1) * stride
            for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        ]
        self.end = self.start + (sum(reach) + 1) * tensor.element_size()
        if not tensor.numel():
            self.end = self.start

    @cached_property
    def elements(self) -> np.ndarray:
        """The addresses of the elements, sorted, each once."""
        offsets = np.zeros(1, dtype=np.int64)
        for size, stride in zip(self.tensor.shape, self.tensor.stride(), strict=True):
            if stride:
                steps = np.arange(size, dtype=np.int64) * stride
                offsets = (offsets[:, None] + steps).reshape(-1)
        addresses = self.start + np.unique(offsets) * self.tensor.element_size()
        return addresses.astype(np.uint64)

    @cached_property
    def dense(self) -> bool:
        """No gaps between the first and the last element?"""
        if self.tensor.is_contiguous():
            return True
        span = (self.end - self.start) // self.tensor.element_size()
        return len(self.elements) == span

    def holds(self, addresses: np.ndarray, itemsize: int) -> np.ndarray:
        """Which accesses of `itemsize` bytes lie wholly on elements?"""
        inside = (addresses >= self.start) & (addresses + itemsize <= self.end)
        if not inside.any() or self.dense:
            return inside
        index = np.searchsorted(self.elements, addresses)
        found = self.elements[np.minimum(index, len(self.elements) - 1)]
        return inside & (found == addresses) & (itemsize <= self.tensor.element_size())

    def describe(self, address: int) -> str:
        """Where an address lies, counted in elements from the first of this tensor."""
        offset = (address - self.start) / self.tensor.element_size()
        return (
            f"{self.name} {offset:+g} elements, {self.name} being {self.tensor.dtype} "
            f"of shape {tuple(self.tensor.shape)} "
            f"and strides {tuple(self.tensor.stride())}"
        )


class Bounds:
    """Checks the launches of one test.

    Attributes:
        violations: what was found, whether or not the exception got through.
        checked: how many accesses were looked at, masked lanes not counted.
    """

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.checked = 0
        self._kernel = ""
        self._extents: list[Extent] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Patch the interpreter: the launch, and all that touches memory."""
        executor, builder = interpreter.GridExecutor, interpreter.InterpreterBuilder
        patch.setattr(executor, "__call__", self._launch(executor.__call__))
        patch.setattr(
            executor, "_init_args_hst", self._arguments(executor._init_args_hst)
        )
        for name, verb, mask in (
            ("create_masked_load", "loads", 1),
            ("create_masked_store", "stores", 2),
            ("create_atomic_rmw", "updates", 3),
            ("create_atomic_cas", "updates", None),
        ):
            access = self._access(getattr(builder, name), verb, mask)
            patch.setattr(builder, name, access)

    def _launch(self, call: Callable) -> Callable:
        @wraps(call)
        def launch(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self._kernel = executor.fn.__name__
            try:
                return call(executor, *args, **kwargs)
            except interpreter.InterpreterError as error:
                cause: BaseException | None = error
                while cause is not None and not isinstance(cause, OutOfBounds):
                    cause = cause.__cause__
                if cause is None:
                    raise
                raise cause from None
            finally:
                self._extents = []

        return launch

    def _arguments(self, init: Callable) -> Callable:
        @wraps(init)
        def arguments(executor: Any, args: Any, kwargs: Any) -> Any:
            host, host_kwargs = init(executor, args, kwargs)
            named = [*zip(executor.arg_names, host, strict=False), *host_kwargs.items()]
            self._extents = [
                Extent(name, tensor)
                for name, value in named
                for tensor in _tensors(value)
            ]
            return host, host_kwargs

        return arguments

    def _access(self, method: Callable, verb: str, mask_at: int | None) -> Callable:
        @wraps(method)
        def access(builder: Any, *args: Any, **kwargs: Any) -> Any:
            at = 1 if method.__name__ == "create_atomic_rmw" else 0
            mask = None if mask_at is None else args[mask_at]
            self._check(args[at], mask, verb, builder.grid_idx)
            return method(builder, *args, **kwargs)

        return access

    def _check(
        self, pointers: Any, mask: Any, verb: str, program: tuple[int, int, int]
    ) -> None:
        __tracebackhide__ = True
        addresses, itemsize = touched(pointers, mask)
        self.checked += addresses.size

        outside = np.ones(addresses.shape, dtype=bool)
        for extent in self._extents:
            if not outside.any():
                return
            outside &= ~extent.holds(addresses, itemsize)
        if not outside.any():
            return
        address = int(addresses[outside][0])
        nearest = min(
            self._extents,
            key=lambda e: max(e.start - address, address - e.end, 0),
            default=None,
        )
        where = nearest.describe(address) if nearest else "there are no tensors"
        violation = (
            f"{self._kernel} {verb} {int(outside.sum())} of {addresses.size} elements "
            f"outside the tensors passed to it, in program {program}; "
            f"the first is at {where}"
        )
        self.violations.append(violation)
        raise OutOfBounds(violation)


def touched(pointers: Any, mask: Any) -> tuple[np.ndarray, int]:
    """The addresses of one access, without the masked lanes, and an element's bytes."""
    addresses = np.asarray(pointers.data, dtype=np.uint64)
    if mask is not None:
        lanes = np.broadcast_to(getattr(mask, "data", mask), addresses.shape)
        addresses = addresses[lanes.astype(bool)]
    itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    return addresses.reshape(-1), itemsize


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of one argument: itself, those of a tuple, a descriptor's base."""
    if isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, torch.Tensor):
        yield value
    elif isinstance(getattr(value, "base", None), torch.Tensor):
        yield value.base
