"""The wrong loop over longer rows: each tile is divided by a sum of its own."""

from snippets.softmax.wrong_blocks import softmax
from tests.replays import Replay, Show
from tests.replays.softmax.rows import MEMORY, RUNS, expected, symbols

REPLAY = Replay(
    call=lambda x: {"y": softmax(x, block_cols=4)},
    expected=expected,
    runs=RUNS,
    memory=MEMORY,
    state=[
        Show("x", "x", "the tile at hand"),
        Show("m_i", "m", "the largest number of the tile"),
        Show("numerator", "p", "exp(x - m)", "numerator"),
        Show("l_i", "l", "the sum over the tile"),
        Show("y", "y", "what is stored"),
    ],
    lines={
        "x = tl.load": "Load tile {tile}: {count} numbers, {bytes} bytes.",
        "m_i = tl.max": (
            "The largest number of this tile is {m_i}. The other tiles have no say."
        ),
        "numerator = tl.exp": "Each number becomes exp(x - {m_i}).",
        "l_i = tl.sum": "They add up to {l_i}, which is the sum of this tile alone.",
        "output": (
            "Wrong: divided by its own sum, this tile alone adds up to {y.sum}, and "
            "not the whole row."
        ),
        "tl.store": "Store the {count} numbers, {bytes} bytes.",
    },
    frames="tl.store",
    program="row {0}",
    formulas={"read": "R · C · b", "written": "R · C · b"},
    symbols=symbols,
    gain="Each number was read once, but three tiles add up to 3.",
    wrong=True,
)
