"""What a module below `parts/` says of one list of a record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace as Shape  # the facts that the record keeps of it
from typing import Any

import torch

from benchmarks import timing
from benchmarks.calls import Call, Inputs, call, load


class Wrong(Exception):
    """The result of a kernel is wrong: it must not be timed."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of ours: a published file, or what is made of one.

    Attributes:
        of: the file.
        changes: texts of it to replace.
        options: of its function.
        takes: whether it is timed on a shape.
        then: makes the timed call of its own one.
    """

    of: str
    changes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    takes: Callable[[Shape], bool] = lambda shape: True
    then: Callable[[Call], Call] = lambda call: call

    def call(self, inputs: Inputs) -> Call:
        """Its call."""
        return self.then(call(load(self.of, self.changes), inputs, **self.options))


@dataclass(frozen=True)
class Part:
    """One list of a record.

    Attributes:
        shapes: all shapes, in the order of the list.
        own: our kernels, by the name that the record gives them.
        inputs: makes those of a shape; several take turns, so that no cache has them.
        peers: who else is called with them. A peer may refuse, when made or called.
        check: raises Wrong if a kernel's result is: its name, its inputs, the result.
        facts: what the record keeps of a kernel on a shape, such as the `flops` or
            `bytes` that it is credited with.
        measure: what is measured of the calls.
        ceiling: "matmul" or "copy", which all speeds are divided by.
        against: by key, the kernel whose time is divided by all times.
        name: such as "attention/decode"; it is that of the module.
    """

    shapes: Sequence[Shape]
    own: Mapping[str, Kernel]
    inputs: Callable[[Shape], list[Inputs]]
    check: Callable[[str, Inputs, Any], None]
    facts: Callable[[str, Shape], dict[str, Any]]
    peers: Mapping[str, Callable[..., Call]] = field(default_factory=dict)
    measure: timing.Measure = timing.in_graphs
    ceiling: str | None = None
    against: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def kernels(self, shape: Shape) -> list[str]:
        """Who is timed on a shape."""
        own = [name for name, kernel in self.own.items() if kernel.takes(shape)]
        return [*own, *self.peers]

    def make(self, name: str, inputs: Inputs) -> Call:
        """The call of a kernel or a peer."""
        if name in self.own:
            return self.own[name].call(inputs)
        return self.peers[name](**inputs)


def published(*names: str, **facts: Any) -> dict[str, Kernel]:
    """These files as they are."""
    return {name: Kernel(name, **facts) for name in names}


def near(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 0.02) -> None:
    """Is a result right at all? How accurate it is, the tests say.

    Raises:
        Wrong: it differs by more than `tolerance` of the largest expected value.
    """
    error, largest = (found - expected).abs().max(), expected.abs().max()
    if not error <= tolerance * largest:
        raise Wrong(f"wrong by {error:.1e}; the largest value is {largest:.1e}")
