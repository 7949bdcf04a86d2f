"""Vector addition: three programs, and a mask for what is past the end."""

import torch

from snippets.start.vector_add import add
from tests.replays import Replay, Run, Show
from tests.replays.sentences import Moment

BLOCK = 4


def masked(at: Moment) -> str:
    """Whether the mask hides a lane."""
    inside = int(at.array("mask").sum())
    if inside == BLOCK:
        return f"All {BLOCK} elements exist, because their numbers are below {{size}}."
    return (
        f"Only {inside} of the {BLOCK} elements exist: their numbers are below "
        "{size}. The mask keeps the others from being loaded or stored."
    )


def vectors(size: int) -> dict[str, torch.Tensor]:
    """x counts up, y in tenths."""
    return {
        "x": torch.arange(1.0, size + 1),
        "y": torch.arange(1.0, size + 1).flip(0) / 10,
    }


REPLAY = Replay(
    call=lambda x, y: {"out": add(x, y, block=BLOCK)},
    expected=lambda x, y: {"out": x + y},
    runs={
        "ten": Run("10 elements", vectors(10)),
        "eight": Run("8 elements", vectors(8)),
    },
    memory=[
        Show("x", "x", "first input"),
        Show("y", "y", "second input"),
        Show("out", "o", "output", "out"),
    ],
    state=[
        Show("offs", "", "which elements this program has", "offs"),
        Show("mask", "", "which of them exist", "mask"),
        Show("x", "x", "its block of x"),
        Show("y", "y", "its block of y"),
    ],
    lines={
        "program": (
            "This is program {program}. All programs run the same lines; only this "
            "number differs."
        ),
        "offsets": (
            "Its block begins at {program} times {BLOCK}, so its elements are "
            "{all.offs}."
        ),
        "mask": masked,
        "load": "Load these elements of x: {count} numbers, {bytes} bytes.",
        "y = tl.load": "Load the same elements of y: {bytes} bytes.",
        "store": "Add the two blocks, and store the {count} sums: {bytes} bytes.",
    },
    frames="store",
    program="program {0}",
    formulas={"read": "2 · n · b", "written": "n · b"},
    symbols=lambda x, y: {"n": len(x), "b": x.element_size()},
    gain="Each number was read once, and no program needs another.",
)
