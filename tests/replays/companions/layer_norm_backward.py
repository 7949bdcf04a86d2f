"""The gradients of layer norm: sums over all rows, of which each program has a part."""

import numpy as np
import torch

from snippets.companions.layer_norm_backward import backward_kernel, sum_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.sentences import Moment, spoken

EPS = 1e-6
PROGRAMS = 2
X = torch.tensor(
    [
        [1.2, 2.4, 0.8, -0.4],
        [2.7, 1.9, 2.1, 1.3],
        [-1.8, 1.4, 3.8, 0.6],
        [-0.8, -2.4, -1.2, 0.4],
    ]
)
DY = torch.tensor([[1.0, 2, 0, -1], [2, 0, 2, 0], [1, 2, 1, -1], [-1, 2, 1, 2]])
WEIGHT = torch.tensor([1.0, 0.5, 2.0, 1.0])


def inputs(cols: int) -> Tensors:
    """The first columns, and what the forward pass keeps of each row."""
    x = X[:, :cols].contiguous()
    variance, mean = torch.var_mean(x, dim=1, correction=0)
    return {
        "dy": DY[:, :cols].contiguous(),
        "x": x,
        "weight": WEIGHT[:cols].contiguous(),
        "mean": mean,
        "rstd": (variance + EPS).rsqrt(),
    }


def call(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
    mean: torch.Tensor, rstd: torch.Tensor,
) -> Tensors:  # fmt: skip
    """Both launches, a row to a tile."""
    rows, cols = x.shape
    dx, sums = torch.empty_like(x), x.new_empty(2, cols)
    partial = x.new_empty(2, PROGRAMS, cols)
    backward_kernel[(PROGRAMS,)](
        *(dy, x, weight, mean, rstd, dx, partial, *dy.stride(), *x.stride()),
        *(rows, cols),
        BLOCK_ROWS=1,
        BLOCK_COLS=4,
        NUM_STAGES=1,
    )
    sum_kernel[(1, 2)](
        partial, sums, PROGRAMS, cols, BLOCK_PROGRAMS=PROGRAMS, BLOCK_COLS=4
    )
    return {"dx": dx, "sum": sums}


def expected(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, **_: torch.Tensor
) -> Tensors:
    """What PyTorch makes of it."""
    given = [each.clone().requires_grad_() for each in (x, weight, weight)]
    y = torch.nn.functional.layer_norm(given[0], x.shape[1:], *given[1:], EPS)
    dx, dw, db = torch.autograd.grad(y, given, dy)
    return {"dx": dx, "sum": torch.stack([dw, db])}


def listed(at: Moment, values: np.ndarray) -> str:
    """Numbers of a row, without the lane past its end."""
    return ", ".join(map(spoken, values.reshape(-1)[: int(at.array("cols"))]))


def factor(value: float) -> str:
    """A number behind a sign."""
    text = spoken(value)
    return text if value >= 0 else f"({text})"


def walk(at: Moment) -> str:
    """Which row is next, and why."""
    row = int(at.array("row"))
    if at["tile"] == 1:
        return (
            f"Two programs share four rows. Program {{program}} begins with row {row}."
        )
    return (
        f"Its next row is {row - PROGRAMS} + {PROGRAMS} = {row}, because row "
        f"{row - 1} belongs to the other program."
    )


def normed(at: Moment) -> str:
    """The normed row, and what stands in the lane past its end."""
    text = (
        "Subtract the mean, {mean}, and multiply by rstd, {rstd}: x_hat again, which "
        "was not kept."
    )
    if at.array("cols") < 4:
        past = spoken(at.array("x_hat")[0, -1])
        text += f" The lane past the end gets {past}, but w and dy are 0 there."
    return text


def first_mean(at: Moment) -> str:
    """The part of g that is constant."""
    g, cols = at.array("g"), int(at.array("cols"))
    return (
        f"The first mean: g adds up to {spoken(g.sum())}, and {spoken(g.sum())} / "
        f"{cols} = {{mean_g}}. A shift of the row changes no output, so this part of g "
        "will be subtracted."
    )


def second_mean(at: Moment) -> str:
    """The part of g along x_hat."""
    products = at.array("g") * at.array("x_hat")
    return (
        f"The second mean, of g · x_hat = {listed(at, products)}: {{mean_gx}}. "
        "Stretching the deviations changes next to nothing, so this will go too."
    )


def gradient(at: Moment) -> str:
    """The first element of dx, with its numbers."""
    dx, rstd, g, mean_g, x_hat, mean_gx = (
        at.array(name).flat[0]
        for name in ("dx", "rstd", "g", "mean_g", "x_hat", "mean_gx")
    )
    return (
        f"dx from the two means. Its first element is {spoken(rstd)} · ({spoken(g)} - "
        f"{factor(mean_g)} - {factor(x_hat)} · {factor(mean_gx)}) = {spoken(dx)}."
    )


def stored(at: Moment) -> str:
    """What of dx is stored, and when."""
    text = "Store row {row} of dx, {bytes} bytes. It needs no other row, so it is done."
    if at.array("cols") < 4:
        text += " The lane past the end is not stored."
    return text


def weight_sum(at: Moment) -> str:
    """What a row adds to dw."""
    added = at.array("dy") * at.array("x_hat")
    return (
        f"Row {{row}} adds dy · x_hat = {listed(at, added)} to the dw of this program,"
        f" in registers: now {listed(at, at.array('dw'))}."
    )


def bias_sum(at: Moment) -> str:
    """What a row adds to db."""
    return (
        f"To db it adds dy = {listed(at, at.array('dy'))}: now "
        f"{listed(at, at.array('db'))}. No other program adds to these numbers, so "
        "they need no lock."
    )


def loaded(at: Moment) -> str:
    """The partial rows, of dw or of db."""
    which = "dw", "db"
    name = which[int(at.array("which"))]
    begin = (
        "The second launch begins when the first has ended. Load"
        if name == "dw"
        else "In the same way load"
    )
    rows = " and ".join(f"({listed(at, row)})" for row in at.array("total"))
    return f"{begin} the {name} of both programs, {{bytes}} bytes: {rows}."


def summed(at: Moment) -> str:
    """The sum, of dw or of db."""
    name = ("dw", "db")[int(at.array("which"))]
    total = at.array("total").sum(0)
    return (
        f"Add the two rows, always in the same order, and store {name}, {{bytes}} "
        f"bytes: {listed(at, total)}."
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "four": Run("4 columns", inputs(4)),
        "three": Run("3 columns, 4 lanes", inputs(3)),
    },
    memory=[
        Show("dy", "y", "the gradient of the output", "dy"),
        Show("x", "x", "the input of the forward pass"),
        Show("mean", "", "kept by the forward pass", turned=True),
        Show("rstd", "", "kept by the forward pass", turned=True),
        Show("w", "", "the weight", "w"),
        Show("dx", "x", "the gradient of the input", "dx"),
        Show("partial", "", "dw of both programs, then db of both", "partial sums"),
        Show("sum", "", "the gradients of weight and bias", "dw, db"),
    ],
    state=[
        Show("w", "", "the weight"),
        Show("dy", "y", "the gradient of the output", "dy"),
        Show("x", "x", "the row"),
        Show("mean", "", "of the row"),
        Show("rstd", "", "of the row"),
        Show("x_hat", "x", "the normed row", "x_hat", place="x"),
        Show("g", "y", "the gradient of the normed row", "g"),
        Show("mean_g", "", "the mean of g"),
        Show("mean_gx", "", "the mean of g · x_hat"),
        Show("dx", "x", "the gradient of the row", "dx"),
        Show("dw", "", "sums of this program", kept=True),
        Show("db", "", "sums of this program", kept=True),
        Show("total", "", "the partial sums of both programs"),
    ],
    rows="offs_r",
    lines={
        "w = tl.load": (
            "Program {program} loads the weight once, for all its rows: {bytes} bytes."
        ),
        "dw = tl.zeros": "",
        "db = tl.zeros": (
            "Its own sums for dw and db begin at 0, in registers. Every row has "
            "something to add to them."
        ),
        "walk": walk,
        "dy = tl.load": "Load row {row} of dy: {bytes} bytes.",
        "x = tl.load": "Load row {row} of x: {bytes} bytes.",
        "mean = tl.load": "Load its mean, which the forward pass kept: {bytes} bytes.",
        "rstd = tl.load": "Load its rstd, which was kept as well: {bytes} bytes.",
        "x_hat": normed,
        "g": "Multiply dy by the weight: g is the gradient that reaches x_hat.",
        "means": first_mean,
        "mean_gx = ": second_mean,
        "dx": gradient,
        "tl.store(dx_ptr": stored,
        "sums": weight_sum,
        "db += dy": bias_sum,
        "tl.store(partial_ptr, ": (
            "No rows are left. Store dw once, {bytes} bytes, as row {program} of the "
            "partial sums, where no other program writes."
        ),
        "tl.store(partial_ptr + programs": (
            "Store db once too, {bytes} bytes, behind the dw of both programs."
        ),
        "total = tl.zeros": "",
        "for start in range": "",
        "total": loaded,
        "rounded": summed,
    },
    frames="sums",
    program={"backward_kernel": "program {0}", "sum_kernel": "sum {1}"},
    formulas={
        "read": "2 · R · C · b + p · C · b + 8 · R + 8 · p · C",
        "written": "R · C · b + 8 · p · C + 2 · C · b",
    },
    symbols=lambda x, **_: {
        "R": x.shape[0],
        "C": x.shape[1],
        "b": x.element_size(),
        "p": PROGRAMS,
    },
    gain="No program waited for another.",
)
