"""Pairs of maximum and sum: four orders of merging, and one result."""

import torch

from snippets.softmax.monoid import Pair, from_value, merge
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.sentences import Moment

Order = int | tuple["Order", "Order"]
ROW = torch.tensor([0.5, 1.9, -0.3, 2.6, 1.2, 0.8])


def run(title: str, order: Order) -> Run:
    """The six elements, merged in this order."""

    def fold(x: torch.Tensor, part: Order) -> Pair:
        if isinstance(part, int):
            return from_value(x[part])
        return merge(fold(x, part[0]), fold(x, part[1]))

    def call(x: torch.Tensor) -> Tensors:
        m_i, l_i = fold(x, order)
        return {"m_i": m_i, "l_i": l_i}

    return Run(title, {"x": ROW}, call)


def expected(x: torch.Tensor) -> Tensors:
    """The pair of the whole row."""
    m_i = x.max()
    return {"m_i": m_i, "l_i": (x - m_i).exp().sum()}


def moved(at: Moment) -> str:
    """Which of the two sums shrinks."""
    larger, smaller = ("a", "b") if float(at["m_a"]) >= float(at["m_b"]) else ("b", "a")
    return (
        f"The sum of {smaller}, {{l_{smaller}}}, moves from the maximum "
        f"{{m_{smaller}}} to {{m_i}} and shrinks; that of {larger}, {{l_{larger}}}, "
        "stays. Together they are {l_i}."
    )


REPLAY = Replay(
    call=lambda x: {},
    expected=expected,
    runs={
        "left": run("From the left", (((((0, 1), 2), 3), 4), 5)),
        "right": run("From the right", (0, (1, (2, (3, (4, 5)))))),
        "tree": run("By a tree", (((0, 1), 2), ((3, 4), 5))),
        "shuffled": run("In any order", ((4, 1), ((5, (2, 0)), 3))),
    },
    memory=[Show("x", "x", "the row")],
    state=[
        Show("m_a", "m", "maximum of part a", "m of a"),
        Show("l_a", "l", "sum of part a", "l of a"),
        Show("m_b", "m", "maximum of part b", "m of b"),
        Show("l_b", "l", "sum of part b", "l of b"),
        Show("m_i", "m", "maximum of both"),
        Show("l_i", "l", "sum of both"),
    ],
    functions=("merge",),
    lines={
        "(m_a, l_a), (m_b, l_b) = a, b": (
            "Merge two pairs: a = ({m_a}, {l_a}) and b = ({m_b}, {l_b})."
        ),
        "max": "The maximum of both parts is the larger one, {m_i}.",
        "rescale": moved,
    },
    frames="rescale",
    program="",
    unit="merge",
    formulas={},
    symbols=lambda x: {},
    gain="All four orders end in this pair.",
)
