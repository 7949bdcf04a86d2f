"""Programs that wait for each other, on an interpreter that runs one after the other.

A program that reads the same again and again waits for another. It is stopped, and runs
again once the others have run. Its atomic operations are not done a second time: they
return what they returned.
"""

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.runtime import interpreter

PATIENCE = 3  # volatile reads alike, after which a program is said to wait


def take_turns(patch: pytest.MonkeyPatch) -> None:
    """Without a GPU: programs may wait, on as many multiprocessors as an H200 has."""
    if not torch.cuda.is_available():
        Turns().install(patch)
        gpu = SimpleNamespace(multi_processor_count=132)
        patch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)


class Waits(BaseException):
    """A program waits: no error, so nothing on its way may take it for one."""


class Turns:
    """Lets the programs of each launch wait for each other.

    Attributes:
        waited: how often a program was stopped.
    """

    def __init__(self) -> None:
        self.waited = 0
        self._reads: list[bytes] = []
        self._known: list[Any] = []  # what the atomics return that were done before
        self._done: list[Any] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Patch the interpreter: launches, loads and atomic operations."""
        executor, builder = interpreter.GridExecutor, interpreter.InterpreterBuilder
        patch.setattr(executor, "__call__", self._launch(executor.__call__))
        patch.setattr(
            builder, "create_masked_load", self._load(builder.create_masked_load)
        )
        patch.setattr(
            builder, "create_atomic_rmw", self._atomic(builder.create_atomic_rmw)
        )

    def _launch(self, call: Callable) -> Callable:
        @wraps(call)
        def launch(executor: Any, *args: Any, **kwargs: Any) -> Any:
            wanted = executor.grid

            def grid(arguments: dict[str, Any]) -> Any:
                # Asked for just before the programs run: not earlier, because the
                # interpreter looks into the kernel's module first.
                executor.fn = self._program(executor.fn)
                return wanted(arguments) if callable(wanted) else wanted

            executor.grid = grid
            try:
                return call(executor, *args, **kwargs)
            except Waits:
                raise AssertionError("programs wait for ever") from None

        return launch

    def _program(self, kernel: Callable) -> Callable:
        """The kernel; after the last program, those that were stopped run again."""
        stopped: dict[tuple[int, int, int], list[Any]] = {}
        builder = interpreter.interpreter_builder

        def run(args: dict[str, Any], done: list[Any]) -> None:
            self._reads, self._known, self._done = [], done.copy(), done
            try:
                kernel(**args)
            except Waits:
                self.waited += 1
                stopped[builder.grid_idx] = done

        @wraps(kernel)
        def program(**args: Any) -> None:
            run(args, [])
            if builder.grid_idx != tuple(count - 1 for count in builder.grid_dim):
                return
            while again := stopped.copy():
                stopped.clear()
                for place, done in again.items():
                    builder.set_grid_idx(*place)
                    run(args, done)
                if len(stopped) == len(again):
                    raise Waits

        return program

    def _load(self, load: Callable) -> Callable:
        @wraps(load)
        def watched(builder: Any, pointer: Any, *args: Any) -> Any:
            result = load(builder, pointer, *args)
            if args[-1]:  # volatile
                self._reads.append(pointer.data.tobytes() + result.data.tobytes())
                if self._reads[-PATIENCE:] == self._reads[-1:] * PATIENCE:
                    raise Waits
            return result

        return watched

    def _atomic(self, atomic: Callable) -> Callable:
        @wraps(atomic)
        def once(builder: Any, *args: Any) -> Any:
            if self._known:
                return self._known.pop(0)
            self._done.append(atomic(builder, *args))
            return self._done[-1]

        return once
