"""Tests of snippets/companions/layer_norm_locks.py."""

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import pytest
import torch
from triton.runtime import interpreter

from snippets.companions import layer_norm_locks
from tests.harness.bounds import touched
from tests.harness.inputs import INTERPRETED, normal
from tests.snippets.companions.norm_gradients import NormGradientTests

Event = tuple[str, frozenset[int]]  # what was done, and to which addresses


class Watch:
    """What each program of the interpreter does to memory and to locks, in order.

    Attributes:
        programs: the events of each, by its place in the grid.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.programs: dict[tuple[int, ...], list[Event]] = defaultdict(list)
        for kind, name, at, mask in (
            ("load", "create_masked_load", 0, 1),
            ("store", "create_masked_store", 0, 2),
            ("take", "create_atomic_cas", 0, None),
            ("release", "create_atomic_rmw", 1, None),
            ("barrier", "create_barrier", None, None),
        ):
            original = getattr(interpreter.InterpreterBuilder, name)
            seen = self._seen(original, kind, at, mask)
            patch.setattr(interpreter.InterpreterBuilder, name, seen)

    def _seen(
        self, original: Callable, kind: str, at: int | None, mask: int | None
    ) -> Callable:
        @wraps(original)
        def seen(builder: Any, *args: Any) -> Any:
            where: frozenset[int] = frozenset()
            if at is not None:
                lanes = None if mask is None else args[mask]
                where = frozenset(touched(args[at], lanes)[0].tolist())
            self.programs[builder.grid_idx].append((kind, where))
            return original(builder, *args)

        return seen


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the interpreter, where one program runs at a time, all locks are free."""
    take = interpreter.InterpreterBuilder.create_atomic_cas

    @wraps(take)
    def taken(builder: Any, *args: Any) -> Any:
        result = take(builder, *args)
        if result.data.any():
            pytest.fail("nobody will give this lock back")
        return result

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_atomic_cas", taken)


class TestLayerNormLocks(NormGradientTests):
    function = staticmethod(layer_norm_locks.layer_norm_backward)
    blocks = ({"locks": 3}, {"locks": 1}, {"locks": 100}, {})
    refused: ClassVar = {"locks": (0, -1)}
    counts = (1, 2, 3, 4, 20)
    rows = 10
    many = 64
    several: ClassVar = {"locks": 100}
    test_the_same_bits_in_every_run = None  # the order differs

    @pytest.mark.skipif(not INTERPRETED, reason="sees what the interpreter touches")
    def test_what_a_lock_protects(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watch = Watch(monkeypatch)
        self.try_shape(20, 50, torch.float32, device)
        protects: dict[frozenset[int], set[int]] = {}
        for program in range(20):
            events = watch.programs[program, 0, 0]
            kinds = [kind for kind, _ in events]
            take, release = kinds.index("take"), kinds.index("release")
            lock, inside = events[take][1], events[take + 1 : release + 1]
            kinds = [kind for kind, _ in inside]
            # Sums are read and written by who has the lock; then all threads wait for
            # each other, and then the same lock is given back.
            assert kinds.count("load") == kinds.count("store") == 2
            assert kinds[-2:] == ["barrier", "release"]
            assert inside[-1][1] == lock
            sums = set().union(*(where for kind, where in inside[:-2]))
            assert len(sums) == 2 * 50
            assert protects.setdefault(lock, sums) == sums
            assert not sums & set().union(*(where for _, where in events[:take]))
        assert len(protects) == 3
        assert len(set().union(*protects.values())) == 3 * 2 * 50

    def test_the_order_decides_about_the_bits(self, device: str) -> None:
        on_gpu = device == "cuda"
        rows, cols = (8192, 1000) if on_gpu else (40, 50)
        x, dy = (normal((rows, cols), torch.float32, device, seed=s) for s in (0, 1))
        weight = normal((cols,), torch.float32, device, seed=2)
        # On a GPU the programs come in another order by themselves.
        found = []
        for run in range(50 if on_gpu else 2):
            order = slice(None) if on_gpu or not run else torch.arange(rows).flip(0)
            given = self.inputs(x[order], dy[order], weight)
            found.append(self.run(*given)["dw"])
        assert any(not torch.equal(dw, found[0]) for dw in found[1:])
        for dw in found[1:]:
            torch.testing.assert_close(dw, found[0], rtol=0, atol=1e-3)
