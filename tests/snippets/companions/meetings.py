"""Programs that meet again and again, on an interpreter that runs one after the other.

`tests.harness.waiting` lets programs wait that meet once: when all have been stopped a
second time it gives up. Here each may be stopped as often as it has come further.
"""

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.runtime import interpreter

from tests.harness.waiting import Turns, Waits


def meet(patch: pytest.MonkeyPatch) -> None:
    """Without a GPU: programs may meet, on as many multiprocessors as an H200 has."""
    if not torch.cuda.is_available():
        Meetings().install(patch)
        gpu = SimpleNamespace(multi_processor_count=132)
        patch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)


class Meetings(Turns):
    """Lets the programs of each launch wait for each other, several times."""

    def _program(self, kernel: Callable) -> Callable:
        """The kernel; after the last program, those that were stopped run again."""
        done: dict[tuple[int, int, int], list[Any]] = {}  # what their atomics returned
        builder = interpreter.interpreter_builder

        def ends(args: dict[str, Any], place: tuple[int, int, int]) -> bool:
            self._done = done.setdefault(place, [])
            self._reads, self._known = [], self._done.copy()
            try:
                kernel(**args)
            except Waits:
                self.waited += 1
                return False
            del done[place]
            return True

        @wraps(kernel)
        def program(**args: Any) -> None:
            ends(args, builder.grid_idx)
            if builder.grid_idx != tuple(count - 1 for count in builder.grid_dim):
                return
            while done:
                further = False
                for place in list(done):
                    builder.set_grid_idx(*place)
                    before = len(done[place])
                    further |= ends(args, place) or len(done[place]) > before
                if not further:
                    raise Waits

        return program
