"""Tiles of rows and columns: every number becomes a column of numbers."""

from collections.abc import Callable

import torch

from snippets.softmax.tiles import softmax
from tests.replays import Replay, Run, Show
from tests.replays.sentences import Moment
from tests.replays.softmax.rows import INF, MEMORY, expected, symbols


def matrix(rows: int, cols: int) -> torch.Tensor:
    """Random numbers of one decimal."""
    generator = torch.Generator().manual_seed(2)
    return torch.randn(rows, cols, generator=generator).round(decimals=1)


def new_maximum(at: Moment) -> str:
    """Whether the tile brings the row a larger number."""
    if not at.rises("m_i", "m_new"):
        return "No row has a larger number in this tile, so all maxima stay."
    if float(at["m_i"]) == -INF:
        return "Each row has its first maximum; that of row {row} is {m_new}."
    return "Row {row} has a larger number: its maximum rises from {m_i} to {m_new}."


def rescale(at: Moment) -> str:
    """What becomes of the sums so far."""
    if float(at["m_i"]) == -INF:
        return "All sums so far are 0, so there is nothing to shrink."
    if at.rises("m_i", "m_new"):
        return "The sum of row {row} shrinks with it, from {before.l_i} to {l_i}."
    return "No maximum has changed, so no sum does."


def ends(text: str, tail: str) -> Callable[[Moment], str]:
    """A sentence, and one more where the tile has rows past the end of the matrix."""

    def said(at: Moment) -> str:
        return (
            f"{text} {tail}" if at.array("offs_r").max() >= at.array("rows") else text
        )

    return said


REPLAY = Replay(
    call=lambda x: {"y": softmax(x, block_rows=4, block_cols=4)},
    expected=expected,
    runs={
        "square": Run("8 by 8", {"x": matrix(8, 8)}),
        "ragged": Run("6 by 10", {"x": matrix(6, 10)}),
    },
    memory=MEMORY,
    state=[
        Show("x", "x", "the tile at hand"),
        Show("m_i", "m", "the largest number so far of each row"),
        Show("m_new", "m", "the largest with this tile", "new m"),
        Show("l_i", "l", "the sum of exp(x - m) so far of each row"),
        Show("y", "y", "the weights of the tile"),
    ],
    rows="offs_r",
    follow="m_i",
    lines={
        "m_i = tl.full": "",
        "l_i = tl.full": ends(
            "This program has the rows {all.offs_r:{rows}}. Each starts with the "
            "maximum -∞ and the sum 0.",
            "Past the last row both stay so.",
        ),
        "pass1: x = tl.load": "Load tile {tile}: {count} numbers, {bytes} bytes.",
        "max": new_maximum,
        "rescale": rescale,
        "sum": ends(
            "Each number x of row {row} adds exp(x - {m_new}): {before.l_i} becomes "
            "{l_i}. The other rows do so with their own new m.",
            "Past the last row the kernel subtracts 0.",
        ),
        "m_i = m_new": "The new maxima are the old ones of the next tile.",
        "pass2: x = tl.load": "Second pass: load tile {tile} again, {bytes} bytes.",
        "output": ends(
            "Each number becomes its weight, with the final m and l of its own row.",
            "Past the last row NaN comes out, and is not stored.",
        ),
        "tl.store": "Store the {count} weights of the tile, {bytes} bytes.",
    },
    frames="sum",
    program="row block {0}",
    formulas={"read": "2 · R · C · b", "written": "R · C · b"},
    symbols=symbols,
    gain="The bytes are as before, but two programs did all rows.",
)
