"""Attention of one query in three passes over the keys, in two and in one."""

from collections.abc import Callable

import torch

from snippets.attention.passes import one_pass, three_pass, two_pass
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention.tiles import INF, heads
from tests.replays.sentences import Moment

# Keys in an order in which the maximum rises twice.
INPUTS = heads(1, 4, 4, seed=1)
INPUTS = INPUTS | {"q": INPUTS["q"][0]}


def run(title: str, function: Callable, read: str) -> Run:
    """One of the three functions, and the bytes of K and V that it reads."""

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
        return {"return": function(q, k, v)}

    return Run(title, INPUTS, call, {"read": read})


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """What PyTorch makes of the formula, in the dtype of q."""
    return {"return": torch.softmax(k @ q * len(q) ** -0.5, dim=0) @ v}


def maximum(at: Moment) -> str:
    """Of the first of three passes."""
    if float(at["before"].m_i) == -INF:
        return "It is the first score, so it is the maximum so far: {m_i}."
    if at.rises("m_i", "m_i"):
        return "It is larger: the maximum rises from {before.m_i} to {m_i}."
    return "It is no larger than {m_i}, so the maximum stays."


def new_maximum(at: Moment) -> str:
    """Of a pass that does more with it."""
    if float(at["m_i"]) == -INF:
        return "It is the first score, so it is the maximum so far: {m_new}."
    if at.rises("m_i", "m_new"):
        return "It is larger: the maximum rises from {m_i} to {m_new}."
    return "It is no larger than {m_i}, so the maximum stays."


def summed(at: Moment) -> str:
    """The sum, of a pass that finds the maximum as well."""
    if float(at["m_i"]) == -INF:
        return "The sum begins with the weight of this key, {l_i}."
    if at.rises("m_i", "m_new"):
        return (
            "The sum so far shrinks to fit the new maximum, and the weight of this key "
            "is added: {before.l_i} becomes {l_i}."
        )
    return "The weight of this key is added to the sum: {before.l_i} becomes {l_i}."


def factor(at: Moment) -> str:
    """Of the one pass."""
    text = "The weight of this key is exp(s - new m) = {p}. "
    if float(at["m_i"]) == -INF:
        return text + "Nothing came before: alpha = {alpha}."
    if at.rises("m_i", "m_new"):
        return text + "What came before shrinks by alpha = {alpha}."
    return text + "What came before keeps its size: alpha = {alpha}."


def added(at: Moment) -> str:
    """The output of the one pass."""
    if float(at["m_i"]) == -INF:
        return "The output so far is the weighted value of this key."
    if float(at["alpha"]) == 1:
        return "The output so far keeps its size, and the weighted value is added."
    return "The output so far is multiplied by alpha, and the weighted value is added."


REPLAY = Replay(
    call=one_pass,
    expected=expected,
    runs={
        "three": run("Three passes", three_pass, "4 · N · d · b"),
        "two": run("Two passes", two_pass, "3 · N · d · b"),
        "one": run("One pass", one_pass, "2 · N · d · b"),
    },
    memory=[
        Show("k", "k", "keys", "K"),
        Show("v", "v", "values", "V"),
    ],
    state=[
        Show("k_j", "k", "a key"),
        Show("v_j", "v", "its value"),
        Show("s", "s", "the score"),
        Show("m_i", "m", "largest score so far", kept=True),
        Show("m_new", "m", "the largest with this key", "new m"),
        Show("alpha", "", "what the past shrinks by", "alpha"),
        Show("p", "p", "the weight of the key"),
        Show("l_i", "l", "sum of the weights so far"),
        Show("acc", "o", "output so far, not divided", "acc"),
        Show("o", "o", "output so far"),
        Show("return", "o", "divided by l", "output", place="o"),
    ],
    functions=("three_pass", "two_pass", "one_pass"),
    lines={
        "three_pass: m_i = q.new_tensor": "First pass: only the maximum is wanted.",
        "three_pass: l_i = q.new_tensor": (
            "Second pass: m = {m_i} is final, so the weights can be summed."
        ),
        "three_pass: o = torch.zeros_like": (
            "Third pass: l = {l_i} is final as well, so the output can be summed."
        ),
        "two_pass: m_i, l_i = ": "First pass: the maximum and the sum together.",
        "two_pass: o = torch.zeros_like": (
            "Second pass: m = {m_i} and l = {l_i} are final, so the output can be "
            "summed."
        ),
        "one_pass: m_i, l_i = ": "",
        "one_pass: acc = torch.zeros_like": (
            "The only pass: maximum, sum and output together, from -∞, 0 and 0."
        ),
        "each for k_j in k": "Load key {tile}: {bytes} bytes.",
        "each for k_j, v_j in zip": "Load key {tile} and its value: {bytes} bytes.",
        "each s = torch.dot": "Its score is q · k times {scale}, which is {s}.",
        "three_max": maximum,
        "three_sum": "It adds exp(s - m) to the sum, which is {l_i} now.",
        "three_output": "Its value enters the output with the weight exp(s - m) / l.",
        "two_max": new_maximum,
        "two_sum": summed,
        "two_pass: m_i = m_new": "",
        "two_output": "Its value enters the output with the weight exp(s - m) / l.",
        "one_max": new_maximum,
        "one_weight": factor,
        "one_sum": summed,
        "one_output": added,
        "one_pass: m_i = m_new": "",
        "one_divide": (
            "One division by l = {l_i}, and the output is complete. Each key was read "
            "once."
        ),
        "three_pass: return o": (
            "The output is complete, but each key was read three times."
        ),
        "two_pass: return o": "The output is complete, but each key was read twice.",
    },
    frames="each s = torch.dot",
    program="",
    unit="query",
    formulas={},
    symbols=lambda q, k, v: {"N": len(k), "d": len(q), "b": q.element_size()},
    gain="No score was stored.",
)
