"""Fresh tensors hold NaN, inside guard bands that nobody may touch."""

import math
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

# Bytes of 0xff are a NaN in every floating type that torch has, and not one that
# arithmetic produces: a NaN written into a guard band still shows.
FLOAT_BYTE, INTEGER_BYTE, BOOL_BYTE = 0xFF, 0xA5, 0x01
SMALLEST_GUARD, LARGEST_GUARD = 4096, 1 << 20


def under_memcheck() -> bool:
    """Is every allocation on its own, so that compute-sanitizer sees its ends?

    Guard bands would then hide what the sanitizer is there to find.
    """
    return os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") != "0"


def poison_byte(dtype: torch.dtype) -> int:
    """The byte that fills what was never written."""
    if dtype.is_floating_point or dtype.is_complex:
        return FLOAT_BYTE
    return BOOL_BYTE if dtype == torch.bool else INTEGER_BYTE


class Poison:
    """Replaces torch.empty and its kin for one test, and keeps the guards.

    Attributes:
        broken: one message for each tensor whose guard bands were written to.
    """

    def __init__(self) -> None:
        self.broken: list[str] = []
        self._finalizers: list[weakref.finalize] = []
        self._empty = torch.empty
        self._lifted = False

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Patch the functions that allocate without writing."""
        for owner, name in (
            (torch, "empty"),
            (torch, "empty_like"),
            (torch, "empty_strided"),
            (torch.Tensor, "new_empty"),
            (torch.Tensor, "new_empty_strided"),
        ):
            patch.setattr(owner, name, self._poisoned(getattr(owner, name)))

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Inside, fresh tensors are as torch makes them.

        To fill a tensor is a launch too: with it, no launch of a kernel directly
        follows another.
        """
        self._lifted = True
        try:
            yield
        finally:
            self._lifted = False

    def check(self) -> list[str]:
        """Look at the guards of all tensors still alive; the messages so far."""
        for finalizer in self._finalizers:
            finalizer()
        self._finalizers.clear()
        return self.broken

    def _poisoned(self, allocate: Callable[..., torch.Tensor]) -> Callable:
        def poisoned(*args: object, **kwargs: object) -> torch.Tensor:
            if self._lifted or kwargs.get("out") is not None:
                return allocate(*args, **kwargs)
            pinned = kwargs.pop("pin_memory", False)
            shape = allocate(*args, **{**kwargs, "device": "meta"})
            source = args[0] if args and isinstance(args[0], torch.Tensor) else None
            device = kwargs.get("device") or (
                source.device if source is not None else torch.get_default_device()
            )
            if pinned or not shape.numel() or torch.device(device).type == "meta":
                return allocate(*args, pin_memory=pinned, **kwargs)
            caller = sys._getframe(1)
            where = f"{caller.f_code.co_filename}:{caller.f_lineno}"
            return self._allocate(shape, device, where)

        return poisoned

    def _allocate(
        self, meta: torch.Tensor, device: torch.device, where: str
    ) -> torch.Tensor:
        """A tensor laid out as `meta`, in the middle of a buffer of poison."""
        span = 1 + sum(
            (size - 1) * stride
            for size, stride in zip(meta.shape, meta.stride(), strict=True)
        )
        guard = 0 if under_memcheck() else min(max(span, SMALLEST_GUARD), LARGEST_GUARD)
        guard = math.ceil(guard / 128) * 128  # keeps the alignment of the allocator
        byte, itemsize = poison_byte(meta.dtype), meta.element_size()
        raw = self._empty(
            (2 * guard + span) * itemsize, dtype=torch.uint8, device=device
        )
        raw.fill_(byte)
        tensor = self._empty(0, dtype=meta.dtype, device=device)
        tensor.set_(raw.untyped_storage(), guard, meta.shape, meta.stride())
        if guard:
            bands = raw[: guard * itemsize], raw[-guard * itemsize :]
            what = f"{meta.dtype} {tuple(meta.shape)} allocated at {where}"
            self._finalizers.append(
                weakref.finalize(tensor, self._look, bands, byte, itemsize, what)
            )
        return tensor.requires_grad_(meta.requires_grad)

    def _look(
        self,
        bands: tuple[torch.Tensor, torch.Tensor],
        byte: int,
        itemsize: int,
        what: str,
    ) -> None:
        for side, band in zip(("before", "after"), bands, strict=True):
            touched = (band != byte).nonzero()
            if len(touched):
                elements = touched.flatten().div(itemsize, rounding_mode="floor")
                first, count = elements.min().item(), len(elements.unique())
                where = (
                    f"{len(band) // itemsize - elements.max().item()} before its first"
                    if side == "before"
                    else f"{first + 1} after its last"
                )
                self.broken.append(
                    f"{count} elements written outside {what}; the nearest {where}"
                )


def guarded(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of `tensor` with the same strides, in a sea of NaN.

    Whatever lies between and around its elements is NaN (for integers, a large
    negative number), so a stray read shows in the result.
    """
    if not tensor.numel():
        return tensor.clone()
    span = 1 + sum(
        (size - 1) * stride
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    guard = 0 if under_memcheck() else math.ceil(max(span, SMALLEST_GUARD) / 128) * 128
    raw = torch.full(
        ((2 * guard + span) * tensor.element_size(),),
        poison_byte(tensor.dtype),
        dtype=torch.uint8,
        device=tensor.device,
    )
    copy = torch.zeros(0, dtype=tensor.dtype, device=tensor.device)
    copy.set_(raw.untyped_storage(), guard, tensor.shape, tensor.stride())
    # An expanded tensor repeats its elements: write each of them once.
    once = tuple(
        slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride()
    )
    with torch.no_grad():
        copy[once].copy_(tensor[once])
    return copy.requires_grad_(tensor.requires_grad)
