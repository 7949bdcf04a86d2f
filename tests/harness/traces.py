"""What a computation moves and calculates, counted while it runs.

A kernel's loads, stores and arithmetic are counted on Triton's interpreter; PyTorch's
own operations count as one kernel each, which reads its inputs and writes its result.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime import interpreter

from tests.harness.bounds import Bounds, touched

VERBS = {"loads": "load", "stores": "store"}
# One operation for each element of the result.
ELEMENTWISE = (
    "create_fadd",
    "create_fsub",
    "create_fmul",
    "create_fdiv",
    "create_precise_divf",
    "create_exp",
    "create_log",
    "create_maxnumf",
    "create_maximumf",
)
# Operations of PyTorch that give a tensor its memory, and do not touch it.
ALLOCATIONS = ("aten::empty", "aten::set_")
# One that asks a tensor for its shape alone.
SHAPE_ONLY = "aten::zeros_like"


class Traffic(Bounds):
    """Counts the launches of kernels, what they move and what they calculate.

    Attributes:
        bytes: of "load q", "store o" and so on: the verb and the kernel's parameter
            without "_ptr". Masked lanes do not count.
        launches: how many there were.
        operations: on floating-point numbers, matrix products left out. A maximum or a
            sum over n numbers counts n, a fused multiply-add 2. Masked lanes do count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()
        self.launches = 0
        self.operations = 0
        self.launching = False

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Patch the interpreter: what touches memory, and what calculates."""
        super().install(patch)
        for name in ELEMENTWISE:
            method = getattr(interpreter.InterpreterBuilder, name)
            patch.setattr(interpreter.InterpreterBuilder, name, self._counted(method))
        fused = self._counted(interpreter.InterpreterBuilder.create_fma, each=2)
        patch.setattr(interpreter.InterpreterBuilder, "create_fma", fused)
        reduce = self._reduction(interpreter.ReduceOps.apply_impl)
        patch.setattr(interpreter.ReduceOps, "apply_impl", reduce)

    def _launch(self, call: Callable) -> Callable:
        checked = super()._launch(call)

        @wraps(call)
        def launch(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self.launches += 1
            self.launching = True
            try:
                return checked(executor, *args, **kwargs)
            finally:
                self.launching = False

        return launch

    def _check(
        self, pointers: Any, mask: Any, verb: str, program: tuple[int, int, int]
    ) -> None:
        super()._check(pointers, mask, verb, program)
        addresses, itemsize = touched(pointers, mask)
        for extent in self._extents:
            lanes = int(extent.holds(addresses, itemsize).sum())
            name = extent.name.removesuffix("_ptr")
            self.bytes[f"{VERBS[verb]} {name}"] += lanes * itemsize

    def _counted(self, method: Callable, each: int = 1) -> Callable:
        @wraps(method)
        def counted(builder: Any, *args: Any) -> Any:
            result = method(builder, *args)
            self.operations += each * result.data.size
            return result

        return counted

    def _reduction(self, method: Callable) -> Callable:
        @wraps(method)
        def reduction(operation: Any, inputs: Any) -> Any:
            self.operations += inputs[0].handle.data.size
            return method(operation, inputs)

        return reduction


class Operations(TorchDispatchMode):
    """Counts the bytes of PyTorch's own operations, launches left out.

    Args:
        traffic: where they are added.
        tensors: the inputs, by name.
        results: what the results are called, in their order.
    """

    def __init__(
        self,
        traffic: Traffic,
        tensors: dict[str, torch.Tensor],
        results: Iterable[str],
    ) -> None:
        super().__init__()
        self.traffic = traffic
        self.results = iter(results)
        self.names = {storage(x): name for name, x in tensors.items()}
        # An address is a name only as long as the tensor lives.
        self.alive = list(tensors.values())

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        """Run one operation and count it."""
        result = operation(*args, **(kwargs or {}))
        inputs = [x for x in args if isinstance(x, torch.Tensor)]
        if (
            self.traffic.launching
            or operation.is_view
            or operation.name().startswith(ALLOCATIONS)
            # The poison in and around fresh tensors: bytes, and what is asked of them.
            or not any(x.is_floating_point() for x in (*inputs, result))
        ):
            return result
        for x in inputs if operation.name() != SHAPE_ONLY else ():
            self.traffic.bytes[f"load {self.names[storage(x)]}"] += size(x)
        name = next(self.results)
        self.traffic.bytes[f"store {name}"] += size(result)
        self.names[storage(result)] = name
        self.alive.append(result)
        return result


def storage(x: torch.Tensor) -> int:
    """What tells a tensor's memory from that of others."""
    return x.untyped_storage().data_ptr()


def size(x: torch.Tensor) -> int:
    """Bytes of the elements."""
    return x.numel() * x.element_size()


@contextmanager
def counted(results: Iterable[str] = (), **tensors: torch.Tensor) -> Iterator[Traffic]:
    """`with counted(["s", "p", "o"], q=q, k=k, v=v) as traffic: ...`

    Args:
        results: names for the results of PyTorch's operations, in their order.
        tensors: the inputs of these operations.
    """
    traffic = Traffic()
    with pytest.MonkeyPatch.context() as patch:
        traffic.install(patch)
        with Operations(traffic, tensors, results):
            yield traffic
