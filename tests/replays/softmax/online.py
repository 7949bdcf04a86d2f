"""Online softmax: three tiles of four, and the sum that shrinks when m rises."""

import math

import torch

from snippets.softmax.online import softmax
from tests.replays import Replay, Run, Show
from tests.replays.sentences import Moment, spoken
from tests.replays.softmax.rows import (
    AGAIN,
    INF,
    MASKED,
    MEMORY,
    RISING,
    RUNS,
    expected,
    symbols,
)


def new_maximum(at: Moment) -> str:
    """Whether the tile brings a larger element."""
    if not at.rises("m_i", "m_new"):
        return "No number of the tile is above {m_i}, so the maximum stays."
    if float(at["m_i"]) == -INF:
        return "The largest number of the tile is {x.max}: it is the maximum so far."
    return (
        "The largest number of the tile is {x.max}. It is more than {m_i}, so the "
        "maximum rises to {m_new}."
    )


def rescale(at: Moment) -> str:
    """What becomes of the sum so far."""
    if float(at["m_i"]) == -INF:
        return "The sum so far is 0, so there is nothing to shrink."
    if at.rises("m_i", "m_new"):
        factor = math.exp(float(at["m_i"]) - float(at["m_new"]))
        return (
            "The terms so far are exp(x - {m_i}). One factor makes exp(x - {m_new}) of "
            f"them all, exp({{m_i}} - {{m_new}}) = {spoken(factor)}: {{before.l_i}} "
            "becomes {l_i}."
        )
    return "The maximum is what it was, so the factor is 1 and the sum stays {l_i}."


def added(at: Moment) -> str:
    """What the tile adds, and what the kernel subtracts for it."""
    if float(at["m_new"]) == -INF:
        return "Every number is -∞ and adds exp(-∞) = 0: the sum stays 0."
    return (
        "Each number x of the tile adds exp(x - {m_new}): {before.l_i} becomes {l_i}."
    )


def guard(at: Moment) -> str:
    """Only where it does something is it worth a step."""
    if float(at["m_new"]) > -INF:
        return ""
    return (
        "All numbers so far are -∞. The kernel will subtract 0 from them and not the "
        "maximum, because -∞ minus -∞ is NaN."
    )


REPLAY = Replay(
    call=lambda x: {"y": softmax(x, block_cols=4)},
    expected=expected,
    runs={
        "rising": Run("Rising", {"x": torch.tensor([RISING])}),
        "falling": Run("Falling", {"x": torch.tensor([RISING[::-1]])}),
        "random": RUNS["random"],
        "masked": Run("Starts with -∞", {"x": torch.tensor([MASKED])}),
    },
    memory=MEMORY,
    state=[
        Show("x", "x", "the tile at hand"),
        Show("m_i", "m", "the largest number so far"),
        Show("m_new", "m", "the largest with this tile", "new m"),
        Show("l_i", "l", "the sum of exp(x - m) so far"),
        Show("y", "y", "the weights of the tile"),
    ],
    frames="sum",
    program="row {0}",
    lines={
        "m_i = tl.full": "Nothing was seen yet, and the maximum of nothing is -∞.",
        "l_i = tl.full": "The sum of nothing is 0.",
        "pass1: x = tl.load": (
            "Load tile {tile} of the row: {count} numbers, {bytes} bytes."
        ),
        "max": new_maximum,
        "shift = tl.where": guard,
        "rescale": rescale,
        "sum": added,
        "m_i = m_new": "The new maximum is the old one of the next tile.",
        "pass2: x = tl.load": AGAIN,
        "output": (
            "m = {m_i} and l = {l_i} are final now, so each number of the tile becomes "
            "its weight exp(x - m) / l."
        ),
        "tl.store": "Store the {count} weights of the tile, {bytes} bytes.",
    },
    formulas={"read": "2 · R · C · b", "written": "R · C · b"},
    symbols=symbols,
    gain="Each number was read twice, not three times.",
)
