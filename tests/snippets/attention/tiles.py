"""Which tiles of the scores a kernel visits and masks: expected, and seen.

A map is a list of strings, one for each block of queries, with a letter for each tile
of keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime import interpreter

from tests.harness.inputs import qkv
from tests.snippets.attention.reference import visible

SKIPPED, WHOLE, MASKED = ".", "#", "/"


@dataclass(frozen=True)
class Case:
    """Lengths, tiles, and the options of `attention`."""

    seq_q: int
    seq_k: int
    block_m: int
    block_n: int
    options: dict[str, Any] = field(default_factory=lambda: {"causal": True})

    @property
    def shape(self) -> tuple[int, int]:
        """Blocks of queries, tiles of keys."""
        return -(-self.seq_q // self.block_m), -(-self.seq_k // self.block_n)

    @property
    def blocks(self) -> dict[str, int]:
        """The options that say how large a tile is."""
        return {"block_m": self.block_m, "block_n": self.block_n}


def expected(case: Case) -> list[str]:
    """What the definition of a mask asks for: no tile in vain, no mask in vain."""
    rows, cols = case.shape
    m, n = case.block_m, case.block_n
    # Rows beyond the last query are computed too, as if they were queries.
    diagonal = case.seq_k - case.seq_q
    seen = torch.zeros((rows * m, cols * n), dtype=torch.bool)
    seen[:, : case.seq_k] = visible(
        rows * m, rows * m + diagonal, "cpu", **case.options
    )[:, : case.seq_k]
    letters = {(False, False): SKIPPED, (True, False): MASKED, (True, True): WHOLE}
    return [
        "".join(
            letters[bool(tile.any()), bool(tile.all())]
            for tile in seen[row * m : (row + 1) * m].split(n, dim=1)
        )
        for row in range(rows)
    ]


def visited(attention: Callable, case: Case, device: str) -> list[str]:
    """The map as seen from outside: a NaN in v shows in each row that meets its tile.

    A weight of 0 does not hide it. What is masked does not show: SKIPPED or WHOLE.
    """
    q, k, v = qkv((1, 1), (1, 1), case.seq_q, case.seq_k, 16, torch.float32, device)
    columns = []
    for start_n in range(0, case.seq_k, case.block_n):
        broken = v.clone()
        broken[..., start_n, :] = float("nan")
        o, _ = attention(q, k, broken, **case.blocks, **case.options)
        blocks = o[0, 0, :, 0].isnan().split(case.block_m)
        assert all(block.all() == block.any() for block in blocks)
        columns.append([WHOLE if block.all() else SKIPPED for block in blocks])
    return ["".join(row) for row in zip(*columns, strict=True)]


def trace(attention: Callable, case: Case) -> list[str]:
    """The map of a launch on the interpreter: what it loads of k, and what it masks."""
    q, k, v = qkv((1, 1), (1, 1), case.seq_q, case.seq_k, 16, torch.float32, "cpu")
    first, row_bytes = k.data_ptr(), k.stride(2) * k.element_size()
    rows, cols = case.shape
    found = [[SKIPPED] * cols for _ in range(rows)]
    current = [0, 0]
    builder = interpreter.InterpreterBuilder
    load, select = builder.create_masked_load, builder.create_select

    def on_load(self: Any, pointers: Any, *args: Any) -> Any:
        row, address = int(self.grid_idx[0]), int(pointers.data.min())
        if first <= address < first + k.numel() * k.element_size():
            current[:] = row, (address - first) // row_bytes // case.block_n
            assert found[current[0]][current[1]] == SKIPPED, "a tile is visited twice"
            found[current[0]][current[1]] = WHOLE
        return load(self, pointers, *args)

    def on_select(self: Any, condition: Any, yes: Any, no: Any) -> Any:
        if np.shape(condition.data) == (case.block_m, case.block_n):
            found[current[0]][current[1]] = MASKED
        return select(self, condition, yes, no)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "create_masked_load", on_load)
        patch.setattr(builder, "create_select", on_select)
        attention(q, k, v, **case.blocks, **case.options)
    return ["".join(row) for row in found]
