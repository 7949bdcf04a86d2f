"""Triton's interpreter, without work that it does over and over to no effect."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter


@contextmanager
def replaced_once() -> Iterator[None]:
    """Replace triton.language once a test, and look up each dtype once.

    By itself, the interpreter replaces it for each launch and each function that a
    kernel calls; it makes a table of numpy's dtypes to look up one; and for each
    operation on integers, eight more find out whether it overflows, for an assertion
    that it then leaves out. That was half of the time of a test.
    """
    patch_language, done = interpreter._patch_lang, []
    everything = SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    builder, look_up = interpreter.interpreter_builder, interpreter._get_np_dtype
    assert not builder.options.debug  # With it, overflow is asserted.
    options = replace(builder.options, sanitize_overflow=False)
    known = cache(look_up)

    def once(_: Any) -> Any:
        if not done:
            done.append(patch_language(everything))
        return interpreter._LangPatchScope()  # nothing to put back after this call

    def dtype_of(dtype: Any) -> np.dtype:
        scalar = dtype.scalar  # All but this and pointers cannot be a key.
        return look_up(scalar) if scalar.is_ptr() else known(scalar)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_lang", once)
        patch.setattr(interpreter, "_get_np_dtype", dtype_of)
        patch.setattr(builder, "options", options)
        yield
    for scope in done:
        scope.restore()
