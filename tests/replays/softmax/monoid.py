"""Pairs of maximum and sum: all orders of merging four of them, and one result."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TypeVar

import numpy as np
import torch

from snippets.softmax.monoid import Pair, from_value, merge
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.sentences import Moment, Value

T = TypeVar("T")
Order = tuple[str, ...]
ROW = torch.tensor([0.5, 1.9, -0.3, 2.6])
"""Each element is a part, called by its place; a merge of "0" and "2" makes "02"."""


def orders(parts: list[str]) -> Iterator[Order]:
    """All orders of merging parts in twos, as what each merge makes."""
    if len(parts) == 1:
        yield ()
    for two in combinations(parts, 2):
        both = "".join(sorted("".join(two)))
        for more in orders(sorted({*parts, both} - {*two})):
            yield both, *more


def states(
    parts: dict[str, T], order: Order, join: Callable[[T, T], T]
) -> Iterator[dict[str, T]]:
    """The parts that there are before each merge of an order, and after the last."""
    yield parts
    for both in order:
        a, b = (name for name in parts if {*name} <= {*both})
        rest = {name: part for name, part in parts.items() if name not in (a, b)}
        parts = dict(sorted({**rest, both: join(parts[a], parts[b])}.items()))
        yield parts


def elements(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The elements by their places."""
    return {str(n): each for n, each in enumerate(x)}


def merged(x: torch.Tensor, order: Order) -> list[dict[str, Pair]]:
    """The pairs of the parts before each merge, and at the end the pair of the row."""
    pairs = {name: from_value(each) for name, each in elements(x).items()}
    return [*states(pairs, order, merge)]


def run(order: Order) -> Run:
    """The elements, merged in this order."""

    def call(x: torch.Tensor) -> Tensors:
        ((m_i, l_i),) = merged(x, order)[-1].values()
        return {"m_i": m_i, "l_i": l_i}

    said = {name: f"{Value(each.numpy())}" for name, each in elements(ROW).items()}
    *_, title = states(said, order, "({} \N{CIRCLED PLUS} {})".format)
    parts = [
        {
            name: f"{', '.join(said[n] for n in name)}: "
            f"({', '.join(f'{Value(each.numpy())}' for each in pair)})"
            for name, pair in pairs.items()
        }
        for pairs in merged(ROW, order)
    ]
    return Run(title["".join(said)][1:-1], {"x": ROW}, call, parts=parts)


def digits(l_i: float) -> str:
    """A sum with all digits that float32 has."""
    return str(np.float32(l_i))


def expected(x: torch.Tensor) -> Tensors:
    """The pair of the whole row."""
    m_i = x.max()
    return {"m_i": m_i, "l_i": (x - m_i).exp().sum()}


def moved(at: Moment) -> str:
    """Which of the two sums shrinks."""
    larger, smaller = ("a", "b") if float(at["m_a"]) >= float(at["m_b"]) else ("b", "a")
    last = at["launch"] == len(ROW) - 2
    both = digits(float(at["l_i"])) if last else "{l_i}"
    return (
        f"The sum of {smaller}, {{l_{smaller}}}, moves from the maximum "
        f"{{m_{smaller}}} to {{m_i}} and shrinks; that of {larger}, {{l_{larger}}}, "
        f"stays. Together they are {both}."
    )


ORDERS = [*orders([*elements(ROW)])]
ENDS = Counter(digits(float(run(order).call(ROW)["l_i"])) for order in ORDERS)


REPLAY = Replay(
    call=lambda x: {},
    expected=expected,
    runs={".".join(order): run(order) for order in ORDERS},
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
    gain=f"All {len(ORDERS)} orders end here: "
    + " and ".join(f"{count} in {l_i}" for l_i, count in ENDS.most_common())
    + "; only rounding tells them apart.",
)
