"""A row in one block: what the lanes past its end must hold."""

from collections.abc import Callable

import torch

from snippets.softmax.one_row import softmax
from tests.replays import Replay, Run, Show
from tests.replays.sentences import Moment
from tests.replays.softmax.rows import MEMORY, expected, symbols

ROWS = [[0.4, 1.9, -0.7, 2.6, 1.1], [1.5, -1.2, 0.3, 0.9, -0.1]]


def ends(text: str, tail: str) -> Callable[[Moment], str]:
    """A sentence, and one more where lanes lie past the end of the row."""

    def said(at: Moment) -> str:
        return f"{text} {tail}" if at.array("x").size > at.array("cols") else text

    return said


REPLAY = Replay(
    call=lambda x: {"y": softmax(x)},
    expected=expected,
    runs={
        "tail": Run("Rows of 5", {"x": torch.tensor(ROWS)}),
        "full": Run("Rows of 4", {"x": torch.tensor(ROWS)[:, :4].contiguous()}),
    },
    memory=MEMORY,
    state=[
        Show("x", "x", "the row"),
        Show("m_i", "m", "its largest number"),
        Show("numerator", "p", "exp(x - m)", "numerator"),
        Show("l_i", "l", "their sum"),
        Show("y", "y", "the weights"),
    ],
    lines={
        "row = tl.program_id": (
            "This is program {program}. It takes row {row}, and no other program does."
        ),
        "x = tl.load": ends(
            "Load row {row}: {count} numbers, {bytes} bytes.",
            "The lanes past its end hold -∞.",
        ),
        "max": ends(
            "The largest number of the row is {m_i}.", "-∞ is never the largest."
        ),
        "numerator": ends(
            "Each number becomes exp(x - {m_i}), which is 1 at most.",
            "The lanes of -∞ become 0.",
        ),
        "sum": ends("They add up to {l_i}.", "A lane of 0 adds nothing."),
        "output": "Divided by {l_i}, they are weights that add up to 1.",
        "tl.store": ends(
            "Store the {count} weights: {bytes} bytes.", "The rest is masked."
        ),
    },
    frames="numerator",
    program="row {0}",
    formulas={"read": "R · C · b", "written": "R · C · b"},
    symbols=symbols,
    gain="A quarter of the bytes of PyTorch's five operations has moved.",
)
