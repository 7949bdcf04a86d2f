"""The reduce-add of a tensor descriptor, which Triton's interpreter does not know.

On a GPU the TMA unit adds a tile in shared memory to one in global memory, element by
element, in an order of its own, and leaves out what lies outside the tensor.
"""

from typing import Any

import pytest
from triton._C.libtriton import ir
from triton.runtime import interpreter


def reduce_add(
    self: interpreter.InterpreterBuilder, kind: Any, desc: Any, value: Any, at: Any
) -> Any:
    """Add to each element that the tensor has, as a relaxed atomic operation would."""
    assert kind == ir.DESCRIPTOR_REDUCE_KIND.ADD, f"{kind} is not an addition"
    pointers, inside = desc.materialize_pointers(at)
    mask = interpreter.TensorHandle(inside, interpreter.tl.int1)
    how = ir.ATOMIC_OP.FADD, pointers, value, mask, ir.MEM_SEMANTIC.RELAXED
    return self.create_atomic_rmw(*how, ir.MEM_SYNC_SCOPE.GPU)


def teach(patch: pytest.MonkeyPatch) -> None:
    """From now on the interpreter knows it."""
    name = "create_descriptor_reduce"
    patch.setattr(interpreter.InterpreterBuilder, name, reduce_add, raising=False)
