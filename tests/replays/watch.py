"""Watches a run: which lines of a file it carries out, and what each of them does.

Triton's interpreter runs a kernel as Python, so sys.settrace sees its lines. What they
load, store and multiply is seen where the harness sees it, in the interpreter.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime import interpreter

from tests.harness.bounds import Extent, touched
from tests.harness.traces import Traffic, storage

Locals = dict[str, np.ndarray]


@dataclass
class Access:
    """Elements of one array that a line reads, or writes with these values."""

    name: str
    index: np.ndarray
    values: np.ndarray | None = None


@dataclass
class Line:
    """A statement, or the head of a compound one, while it ran once.

    Attributes:
        node: the statement.
        kernel: the kernel, or the function.
        program: its index in the grid.
        launch: how many launches there were before.
        before, after: the local variables around it.
        caller: the line that called the function, if one in the same file did.
        last: the last line of the functions that it called, in the same file, if what
            the line sets comes from them and not from memory.
        enters: whether the head of a loop is followed by its body.
    """

    node: ast.stmt
    kernel: str
    program: tuple[int, int, int]
    launch: int
    before: Locals
    caller: "Line | None" = None
    after: Locals = field(default_factory=dict)
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    products: int = 0
    last: "Line | None" = None
    enters: bool = False


class Watch(Traffic):
    """The lines of the functions of a file, in the order in which they began.

    Attributes:
        lines: what ran.
        tensors: the arrays of the launches by name, with their values before the first.
    """

    def __init__(
        self,
        path: Path,
        functions: set[str],
        names: Mapping[str, str],
        inputs: Mapping[str, torch.Tensor],
    ) -> None:
        super().__init__()
        self.path = str(path)
        self.functions = functions
        self.names = names
        self.statements = _statements(ast.parse(path.read_bytes()))
        self.lines: list[Line] = []
        self.tensors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self.calls = 0
        self._inputs = {storage(x): (name, x) for name, x in inputs.items()}
        self._open: list[Line | None] = []
        self._program = (0, 0, 0)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Patch the interpreter, its products too."""
        super().install(patch)
        builder = interpreter.InterpreterBuilder
        patch.setattr(builder, "create_dot", self._product(builder.create_dot))
        grid = builder.set_grid_idx

        def set_grid_idx(this: Any, x: int, y: int, z: int) -> None:
            self._program = (x, y, z)
            grid(this, x, y, z)

        patch.setattr(builder, "set_grid_idx", set_grid_idx)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What runs inside is watched."""
        with pytest.MonkeyPatch.context() as patch:
            self.install(patch)
            before = sys.gettrace()
            sys.settrace(self._called)
            try:
                yield
            finally:
                sys.settrace(before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable | None:
        code = frame.f_code
        if code.co_filename != self.path or code.co_name not in self.functions:
            return None
        self.calls += not self._open
        self._open.append(None)
        return self._traced

    def _traced(self, frame: FrameType, event: str, value: Any) -> Callable:
        if event in ("line", "return"):
            node = self.statements.get(frame.f_lineno) if event == "line" else None
            line = self._open[-1]
            if event == "return" or (line and line.node is not node) or line is None:
                now = _locals(frame)
                if line:
                    self._views(line, frame)
                    if isinstance(line.node, ast.Return):
                        now |= _numbers({"return": value})
                    self._close(line, now, node)
                self._open[-1] = self._begin(frame, node, now) if node else None
            if event == "return":
                self._open.pop()
        return self._traced

    def _begin(self, frame: FrameType, node: ast.stmt, now: Locals) -> Line:
        kernel = self._kernel or frame.f_code.co_name
        launch = (self.launches or self.calls) - 1
        caller = self._open[-2] if len(self._open) > 1 else None
        line = Line(node, kernel, self._program, launch, now, caller)
        self.lines.append(line)
        return line

    def _close(self, line: Line, now: Locals, then: ast.stmt | None) -> None:
        line.after = now
        if self.lines[-1] is not line and not line.reads:
            line.last = self.lines[-1]
        line.enters = isinstance(line.node, ast.For | ast.While) and any(
            then is each for each in line.node.body
        )
        for access in line.writes:
            tensor, _ = self.tensors[access.name]
            access.values = _flat(tensor)[access.index]

    def _views(self, line: Line, frame: FrameType) -> None:
        """What a function of PyTorch loads: the parts of inputs that it names."""
        for name in names(line.node, ast.Store) if not self.launching else ():
            view = frame.f_locals.get(name)
            if not isinstance(view, torch.Tensor) or storage(view) not in self._inputs:
                continue
            own, tensor = self._inputs[storage(view)]
            self.tensors.setdefault(own, (tensor, tensor.clone()))
            if view.numel() < tensor.numel():
                first = view.storage_offset()
                line.reads.append(Access(own, np.arange(first, first + view.numel())))

    def _check(
        self, pointers: Any, mask: Any, verb: str, program: tuple[int, int, int]
    ) -> None:
        super()._check(pointers, mask, verb, program)
        addresses, itemsize = touched(pointers, mask)
        line = next(line for line in reversed(self._open) if line)
        for extent in self._extents:
            inside = extent.holds(addresses, itemsize)
            if inside.any():
                name = self._known(extent)
                index = _index(extent, addresses[inside])
                accesses = line.reads if verb == "loads" else line.writes
                accesses.append(Access(name, index))
                return

    def _known(self, extent: Extent) -> str:
        """The name of an array, which is kept as it was when it was first touched."""
        own = extent.name.removesuffix("_ptr")
        name = self.names.get(f"{self._kernel}.{extent.name}", own)
        if name not in self.tensors:
            self.tensors[name] = (extent.tensor, extent.tensor.detach().clone())
        return name

    def _product(self, method: Callable) -> Callable:
        @wraps(method)
        def product(builder: Any, a: Any, b: Any, *args: Any) -> Any:
            line = next(line for line in reversed(self._open) if line)
            line.products += a.data.size * b.data.shape[-1]
            return method(builder, a, b, *args)

        return product


def _statements(tree: ast.Module) -> dict[int, ast.stmt]:
    """The statement of each line, the innermost; of a compound one only its head."""
    found: dict[int, ast.stmt] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
            first, last = span(node)
            found.update(dict.fromkeys(range(first, last + 1), node))
    return found


def span(node: ast.stmt) -> tuple[int, int]:
    """The first and the last line of a statement, or of its head."""
    head = getattr(node, "iter", getattr(node, "test", node))
    return node.lineno, head.end_lineno or node.lineno


def names(node: ast.AST, context: type[ast.expr_context]) -> Iterator[str]:
    """The variables that a statement, or the head of one, reads or sets."""
    parts = [node]
    if isinstance(node, ast.For):
        parts = [node.target, node.iter]
    elif isinstance(node, ast.If | ast.While):
        parts = [node.test]
    elif isinstance(node, ast.Return) and context is ast.Store:
        yield "return"
    for part in parts:
        for each in ast.walk(part):
            if isinstance(each, ast.Name) and isinstance(each.ctx, context):
                yield each.id
        if isinstance(part, ast.AugAssign) and context is ast.Load:
            yield ast.unparse(part.target)


def _locals(frame: FrameType) -> Locals:
    """The numbers among the local variables, copied."""
    return _numbers(frame.f_locals)


def _numbers(values: Mapping[str, Any]) -> Locals:
    found = {}
    for name, value in values.items():
        number = _number(value)
        if number is not None:
            found[name] = number
    return found


def _number(value: Any) -> np.ndarray | None:
    if isinstance(value, tl.tensor):
        if value.dtype.is_ptr():
            return None
        data = np.array(value.handle.data)
        return data if value.type.is_block() else data.reshape(())
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, int | float):
        return np.asarray(value)
    return None


def _index(extent: Extent, addresses: np.ndarray) -> np.ndarray:
    """Which elements, counted row by row, lie at these addresses."""
    offsets = np.zeros(1, dtype=np.int64)
    for size, stride in zip(extent.tensor.shape, extent.tensor.stride(), strict=True):
        offsets = (offsets[:, None] + np.arange(size) * stride).reshape(-1)
    order = np.argsort(offsets, kind="stable")
    steps = (addresses.astype(np.int64) - extent.start) // extent.tensor.element_size()
    return order[np.searchsorted(offsets[order], steps)]


def _flat(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().reshape(-1).numpy()
