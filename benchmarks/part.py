"""What a module below `parts/` says of one list of a record."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace as Shape  # the facts that the record keeps of it
from typing import Any

import torch

from benchmarks import timing
from benchmarks.calls import Call, prepare

# Prepares what is timed: a call, or several on other inputs, which then take turns.
Maker = Callable[[], "Call | list[Call]"]


class Wrong(Exception):
    """The result of a kernel is wrong: it must not be timed."""


@dataclass(frozen=True)
class Trial:
    """Our kernels and their peers on one shape.

    Attributes:
        own: the kernels that take the shape.
        peers: whom they are compared with. Each may refuse, when made or when called.
        check: raises Wrong if a kernel's result is.
        work: the `flops` or `bytes` that every kernel is credited with.
        facts: what differs for a kernel: its dtype, its work.
        measure: what is measured of the calls.
    """

    own: dict[str, Maker]
    peers: dict[str, Maker]
    check: Callable[[str, Any], None]
    work: dict[str, int] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    measure: timing.Measure = timing.in_graphs


@dataclass(frozen=True)
class Part:
    """One list of a record.

    Attributes:
        own: all our kernels in it: published files, or what is made of them.
        shapes: all shapes, in the order of the list.
        trial: makes the inputs of a shape, and says what is to be done with them.
        compiled: the peers that are compiled for each shape.
        ceiling: "matmul" or "copy", which all speeds are divided by.
        against: by key, the kernel whose time is divided by all times.
        name: such as "attention/decode"; it is that of the module.
    """

    own: tuple[str, ...]
    shapes: Callable[[], Iterable[Shape]]
    trial: Callable[[Shape], Trial]
    compiled: tuple[str, ...] = ()
    ceiling: str | None = None
    against: dict[str, str] = field(default_factory=dict)
    name: str = ""


def kind(shape: Shape) -> Hashable:
    """What decides how a kernel is compiled: neither lengths nor how many there are."""
    lengths = "rows", "batch", "seq", "window", "tokens", "fill"
    return tuple((k, v) for k, v in vars(shape).items() if k not in lengths)


def published(
    names: Iterable[str], *inputs: torch.Tensor, **options: Any
) -> dict[str, Maker]:
    """How to make the calls of these snippets."""
    return {name: partial(prepare, name, *inputs, **options) for name in names}


def near(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 0.02) -> None:
    """Is a result right at all? How accurate it is, the tests say.

    Raises:
        Wrong: it differs by more than `tolerance` of the largest expected value.
    """
    error, largest = (found - expected).abs().max(), expected.abs().max()
    if not error <= tolerance * largest:
        raise Wrong(f"wrong by {error:.1e}; the largest value is {largest:.1e}")
