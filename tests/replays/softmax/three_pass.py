"""Longer rows: three passes over three tiles, beside the loop that is wrong."""

from snippets.softmax.three_pass import softmax
from tests.replays import Replay, Show
from tests.replays.sentences import Moment
from tests.replays.softmax.rows import AGAIN, INF, MEMORY, RUNS, expected, symbols


def maximum(at: Moment) -> str:
    """Whether the tile brings a larger element."""
    if float(at["before"].m_i) == -INF:
        return "The largest number of this tile is {x.max}: the maximum so far."
    if at.rises("m_i", "m_i"):
        return "This tile has a larger number: the maximum rises to {m_i}."
    return "No number of this tile is above {m_i}, so the maximum stays."


REPLAY = Replay(
    call=lambda x: {"y": softmax(x, block_cols=4)},
    expected=expected,
    runs=RUNS,
    memory=MEMORY,
    state=[
        Show("x", "x", "the tile at hand"),
        Show("m_i", "m", "the largest number so far"),
        Show("l_i", "l", "the sum of exp(x - m) so far"),
        Show("y", "y", "the weights of the tile"),
    ],
    lines={
        "m_i = tl.full": "First pass: only the maximum of the whole row is wanted.",
        "pass1: x = tl.load": "Load tile {tile}: {count} numbers, {bytes} bytes.",
        "max": maximum,
        "l_i = tl.full": (
            "Second pass: m = {m_i} is final, so the sum of all exp(x - m) can begin."
        ),
        "pass2: x = tl.load": AGAIN,
        "sum": "The tile adds its exp(x - m): the sum grows to {l_i}.",
        "pass3: x = tl.load": "Third pass: load tile {tile} once more, {bytes} bytes.",
        "output": (
            "m = {m_i} and l = {l_i} are those of the whole row, so each number "
            "becomes its weight."
        ),
        "tl.store": "Store the {count} weights of the tile, {bytes} bytes.",
    },
    frames="sum",
    program="row {0}",
    formulas={"read": "3 · R · C · b", "written": "R · C · b"},
    symbols=symbols,
    gain="A row may have any length, but each number was read three times.",
    beside="softmax/wrong_blocks.py",
)
