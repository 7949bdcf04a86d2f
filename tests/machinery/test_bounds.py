"""The bounds checker, on kernels that leave their tensors: those of snippets do not.

These kernels run on the interpreter only, also where there is a GPU.
"""

import re
from collections.abc import Iterator

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.harness.bounds import Bounds, OutOfBounds
from tests.machinery.views import VIEWS, places

if not triton.knobs.runtime.interpret:
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)


@pytest.fixture(autouse=True)
def bounds() -> Iterator[Bounds]:
    with pytest.MonkeyPatch.context() as patch:
        watch = Bounds()
        watch.install(patch)
        yield watch


@triton.jit
def helper(pointers, mask):
    return tl.load(pointers, mask)


@triton.jit
def copy(x_ptr, y_ptr, n, first, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    offs = first + tl.arange(0, BLOCK)
    if MASKED:
        mask = offs < n
        tl.store(y_ptr + offs, helper(x_ptr + offs, mask), mask)
    else:
        tl.store(y_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def store(y_ptr, offset):
    tl.store(y_ptr + offset, 1.0)


@triton.jit
def halfway(y_ptr):
    tl.store((y_ptr.to(tl.int64) + 38).to(tl.pointer_type(tl.float32)), 1.0)


@triton.jit
def count(y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offs, 1.0, mask=offs < n)


@triton.jit
def lock(y_ptr, offset):
    tl.atomic_cas(y_ptr + offset, 0, 1)


@triton.jit
def described(descriptor, y_ptr, BLOCK: tl.constexpr):
    tile = descriptor.load([0, 0])
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.sum(tile, axis=0))


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


TWENTY = zeros(20)
LOCKS = torch.zeros(4, dtype=torch.int32)
FAR = r"copy loads 28 of 128 .*program \(0, 0, 0\).*x_ptr \+100 elements"
# A launch, how it goes on, and where it leaves its tensors.
OUTSIDE = [
    (copy, (zeros(100), zeros(100), 100, 0, False, 128), FAR),
    (copy, (zeros(100), zeros(100), 100, -1, True, 4), r"loads 1 of 4 .* -1 elem"),
    (halfway, (zeros(10),), r"stores .* \+9.5 elements"),
    (halfway, (torch.zeros(99, dtype=torch.int8)[::2],), r"stores .* \+38 elements"),
    (store, (TWENTY[:10], 10), "store stores"),  # into a tensor of no launch
    (store, {"y_ptr": zeros(4), "offset": 4}, "y_ptr"),
    (count, (zeros(6), 8, 8), "count updates 2 of 8"),
    (lock, (LOCKS, 4), "lock updates"),
]


@pytest.mark.parametrize(("kernel", "arguments", "where"), OUTSIDE)
def test_what_lies_outside(bounds, kernel, arguments, where):
    named = arguments if isinstance(arguments, dict) else {}
    with pytest.raises(OutOfBounds, match=where) as caught:
        kernel[(1,)](*(() if named else arguments), **named)
    assert bounds.violations == [str(caught.value)]


@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("view", VIEWS)
def test_leaving_a_view_is_leaving_although_its_storage_goes_on(view, dtype):
    storage = torch.zeros(3, 10, dtype=dtype)
    x = view(storage)
    for offset in {*range(-x.numel(), 31)} - places(x):
        with pytest.raises(OutOfBounds, match=re.escape(f"y_ptr {offset:+} elements")):
            store[(1,)](x, offset)
    assert not storage.any()


def test_the_base_of_a_descriptor_bounds_it():
    tile = TensorDescriptor(zeros(8, 16), [20, 16], [16, 1], [16, 16])
    with pytest.raises(OutOfBounds, match="described loads"):
        described[(1,)](tile, zeros(16), BLOCK=16)
