"""Tiles of rows and columns: every number becomes a column of numbers."""

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
        return "Nothing was summed before this tile, so there is nothing to shrink."
    if at.rises("m_i", "m_new"):
        return "The sum of row {row} shrinks with it, from {before.l_i} to {l_i}."
    return "No maximum has changed, so no sum does."


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
        "l_i = tl.full": (
            "This program has the rows {all.offs_r.first} to {all.offs_r.end}. Each "
            "starts with the maximum -∞ and the sum 0."
        ),
        "pass1: x = tl.load": "Load tile {tile}: {count} numbers, {bytes} bytes.",
        "max": new_maximum,
        "rescale": rescale,
        "sum": "Each row adds the exp(x - m) of its numbers: row {row} is at {l_i}.",
        "m_i = m_new": "The new maxima are the old ones of the next tile.",
        "pass2: x = tl.load": "Second pass: load tile {tile} again, {bytes} bytes.",
        "output": (
            "Each number becomes its weight, with the final m and l of its own row."
        ),
        "tl.store": "Store the {count} weights of the tile, {bytes} bytes.",
    },
    frames="sum",
    program="row block {0}",
    formulas={"read": "2 · R · C · b", "written": "R · C · b"},
    symbols=symbols,
)
