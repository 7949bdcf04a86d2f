"""Which tiles the two backward kernels visit and mask: expected, and seen.

Maps as in tests.snippets.attention.tiles: a string for each block of queries, with a
letter for each tile of keys.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime import interpreter

from tests.harness.inputs import NAN, normal, qkv
from tests.snippets.attention.reference import visible
from tests.snippets.attention.tiles import MASKED, SKIPPED, WHOLE, Case
from tests.snippets.backward.reference import attention


def of_keys(case: Case) -> list[str]:
    """What dK and dV ask for: here keys beyond the last need no mask.

    Queries beyond the last are computed as if they were there.
    """
    (rows, cols), m, n = case.shape, case.block_m, case.block_n
    diagonal = case.seq_k - case.seq_q
    seen = visible(rows * m, rows * m + diagonal, "cpu", **case.options)
    found = [[SKIPPED] * cols for _ in range(rows)]
    for row in range(rows):
        for col in range(cols):
            first, last = col * n, min((col + 1) * n, case.seq_k)
            tile = seen[row * m : (row + 1) * m, first:last]
            if tile.any():
                found[row][col] = WHOLE if tile.all() else MASKED
    return ["".join(row) for row in found]


def inputs(case: Case, device: str) -> tuple[torch.Tensor, ...]:
    """(q, k, v, o, lse, do) of one head."""
    q, k, v = qkv((1, 1), (1, 1), case.seq_q, case.seq_k, 16, torch.float32, device)
    o, lse = attention(q, k, v, **case.options)
    return q, k, v, o, lse, normal(q.shape, q.dtype, device, seed=9)


def visited(backward: Callable, case: Case, device: str) -> dict[str, list[str]]:
    """The maps as seen from outside: a NaN shows wherever its tile is visited.

    One in v shows in the rows of dq, one in do in those of dk: a weight of 0 does not
    hide it. What is masked does not show: SKIPPED or WHOLE.
    """
    q, k, v, o, lse, do = inputs(case, device)
    options = {**case.blocks, **case.options}

    def shown(dx: torch.Tensor, block: int) -> list[str]:
        blocks = dx[0, 0, :, 0].isnan().split(block)
        assert all(each.all() == each.any() for each in blocks)
        return [WHOLE if each.all() else SKIPPED for each in blocks]

    columns, rows = [], []
    for start_n in range(0, case.seq_k, case.block_n):
        broken = v.clone()
        broken[..., start_n, :] = NAN
        dq, *_ = backward(q, k, broken, o, lse, do, **options)
        columns.append(shown(dq, case.block_m))
    for start_m in range(0, case.seq_q, case.block_m):
        broken = do.clone()
        broken[..., start_m, :] = NAN
        _, dk, _ = backward(q, k, v, o, lse, broken, **options)
        rows.append(shown(dk, case.block_n))
    turned = zip(*columns, strict=True)
    return {"dq": ["".join(x) for x in turned], "dk": ["".join(x) for x in rows]}


class Launches:
    """A kernel that says when it is launched."""

    def __init__(self, kernel: Any, said: Callable[[], None]) -> None:
        self.kernel, self.said = kernel, said

    def __getitem__(self, grid: Any) -> Any:
        """The kernel for a grid."""
        self.said()
        return self.kernel[grid]


def trace(module: ModuleType, case: Case) -> dict[str, list[str]]:
    """The maps of the launches on the interpreter: what they load and what they mask.

    A program of dq_kernel has a block of queries and loads tiles of k; one of
    dkdv_kernel has a block of keys and loads tiles of q.
    """
    q, k, v, *others = inputs(case, "cpu")
    rows, cols = case.shape
    found = {x: [[SKIPPED] * cols for _ in range(rows)] for x in ("dq", "dk")}
    current: dict[str, Any] = {}
    builder = interpreter.InterpreterBuilder
    load, select = builder.create_masked_load, builder.create_select
    product, products = builder.create_dot, {"dq": 0, "dk": 0}
    walked = {"dq": (k, case.block_n), "dk": (q, case.block_m)}
    shapes = {"dq": (case.block_m, case.block_n), "dk": (case.block_n, case.block_m)}

    def on_load(self: Any, pointers: Any, *args: Any) -> Any:
        x, block = walked[current["map"]]
        tile, (inside, left) = (
            int(self.grid_idx[0]),
            divmod(
                int(pointers.data.min()) - x.data_ptr(), x.stride(2) * x.element_size()
            ),
        )
        if 0 <= inside < x.shape[2] and not left and pointers.data.ndim == 2:
            place = tile, inside // block
            row, col = place if current["map"] == "dq" else place[::-1]
            assert found[current["map"]][row][col] == SKIPPED, "a tile is visited twice"
            found[current["map"]][row][col] = WHOLE
            current["tile"] = row, col
        return load(self, pointers, *args)

    def on_select(self: Any, condition: Any, yes: Any, no: Any) -> Any:
        if np.shape(condition.data) == shapes[current["map"]]:
            row, col = current["tile"]
            found[current["map"]][row][col] = MASKED
        return select(self, condition, yes, no)

    def on_product(self: Any, *args: Any) -> Any:
        products[current["map"]] += 1
        return product(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "create_dot", on_product)
        patch.setattr(builder, "create_masked_load", on_load)
        patch.setattr(builder, "create_select", on_select)
        for kernel, name in (("dq_kernel", "dq"), ("dkdv_kernel", "dk")):
            said = Launches(
                getattr(module, kernel), lambda name=name: current.update(map=name)
            )
            patch.setattr(module, kernel, said)
        module.attention_backward(q, k, v, *others, **case.blocks, **case.options)
    maps = {x: ["".join(row) for row in grid] for x, grid in found.items()}
    # A tile beyond the last key or query shows on no map.
    tiles = {x: rows * cols - "".join(grid).count(SKIPPED) for x, grid in maps.items()}
    assert products == {"dq": 3 * tiles["dq"], "dk": 4 * tiles["dk"]}
    return maps
