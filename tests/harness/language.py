"""Triton's interpreter replaces triton.language once a test, not once a call."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import triton.language as tl
from triton.runtime import interpreter


@contextmanager
def replaced_once() -> Iterator[None]:
    """By itself, it does so for each launch and each function that a kernel calls.

    A fifth of the time of a test went into that.
    """
    replace, done = interpreter._patch_lang, []
    everything = SimpleNamespace(__globals__={"tl": tl, "core": tl.core})

    def once(_: Any) -> Any:
        if not done:
            done.append(replace(everything))
        return interpreter._LangPatchScope()  # nothing to put back after this call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_lang", once)
        yield
    for scope in done:
        scope.restore()
