"""The gradient of softmax: one number for each row in place of the Jacobian."""

import numpy as np
import torch
import triton.language as tl

from snippets.softmax.gradient import backward_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.sentences import Moment, spoken
from tests.replays.softmax.rows import symbols

ROWS = 2
COL = 1  # where the one-hot dy has its 1, and where row 1 of y is nearly 1
Y = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.01, 0.97, 0.01, 0.01]])
SAME = torch.tensor([[1.0, 2, 0, -1]] * ROWS)
ONE_HOT = torch.tensor([[0.0, 1, 0, 0]] * ROWS)


def call(y: torch.Tensor, dy: torch.Tensor) -> Tensors:
    """The launch for short rows, with a tile of two."""
    dx, words = torch.empty_like(y), torch.zeros(2, dtype=torch.int64)
    backward_kernel[(1,)](
        *(y, dy, dx, words, *dy.stride(), *y.shape, 1),
        COMPUTE=tl.float32 if y.dtype == torch.float32 else tl.float64,
        BLOCK_ROWS=ROWS,
        BLOCK_COLS=y.shape[1],
        BLOCK_CHUNKS=1,
        TILES=1,
        KEPT=1,
    )
    return {"dx": dx}


def expected(y: torch.Tensor, dy: torch.Tensor) -> Tensors:
    """What the whole Jacobian gives."""
    jacobian = torch.diag_embed(y) - y[:, :, None] * y[:, None, :]
    return {"dx": (dy[:, None] @ jacobian)[:, 0]}


def one_hot(at: Moment) -> bool:
    """Whether dy is 1 in one column and 0 elsewhere."""
    return bool(np.count_nonzero(at.array("dy")) == ROWS)


def factor(value: float) -> str:
    """A number behind a sign."""
    text = spoken(value)
    return text if value >= 0 else f"({text})"


def total(values: np.ndarray) -> str:
    """A sum, written out; what float32 rounds is left out of its value."""
    first, *rest = values
    signed = (f"{'-' if x < 0 else '+'} {spoken(abs(x))}" for x in rest)
    value = spoken(round(float(values.sum()), 6))
    return " ".join([spoken(first), *signed, "=", value])


def arrives(at: Moment) -> str:
    """What dy says."""
    text = "Load dy, the gradient that arrives: {bytes} bytes. "
    if one_hot(at):
        return (
            f"{text}The loss is the sum of column {COL} of y, so dy is 1 there and 0 "
            "elsewhere."
        )
    return f"{text}It is the same in both rows."


def products(at: Moment) -> str:
    """Both rows of products."""
    first, other = (", ".join(map(spoken, row)) for row in at.array("products"))
    return f"Add y times dy: row 0 becomes ({first}) and row 1 becomes ({other})."


def row_dot(at: Moment) -> str:
    """What the sums are."""
    first, other = map(spoken, at.array("delta")[:, 0])
    text = (
        f"Add up each row of products. The row-dot is {first} in row 0 and {other} in "
        "row 1: "
    )
    if one_hot(at):
        return f"{text}with this dy, the probability of column {COL}."
    return (
        f"{text}the mean of dy under the probabilities. In row 1 it is close to the "
        f"{spoken(at.array('dy')[1, COL])} of the sure column."
    )


def bracket(at: Moment, row: int, col: int) -> str:
    """One element of dx, with its numbers."""
    y, dy, dx = (at.array(name)[row, col] for name in ("y", "dy", "dx"))
    delta = at.array("delta")[row, 0]
    return f"{spoken(y)} · ({spoken(dy)} - {factor(delta)}) = {spoken(dx)}"


def gradient(at: Moment) -> str:
    """Elements of dx, and why those of row 1 are small."""
    if one_hot(at):
        return (
            f"dx = y · (dy - row-dot). In row 0, column {COL} gets "
            f"{bracket(at, 0, COL)} and column 0 gets {bracket(at, 0, 0)}. With this "
            f"dy, each row of dx is row {COL} of its Jacobian, which was never made."
        )
    return (
        f"dx = y · (dy - row-dot). Column {COL} gets {bracket(at, 0, COL)} in row 0, "
        f"but {bracket(at, 1, COL)} in row 1. There the bracket of the sure column is "
        "nearly 0, and in all others y is: a row that is certain learns little."
    )


def stored(at: Moment) -> str:
    """Each row of dx adds up to 0."""
    first, other = map(total, at.array("dx"))
    return (
        "Store dx, {bytes} bytes. Each row adds up to 0, because adding a constant to "
        f"x changes no output: {first}, and {other}."
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "same": Run("Two rows, the same dy", {"y": Y, "dy": SAME}),
        "hot": Run("A one-hot dy", {"y": Y, "dy": ONE_HOT}),
    },
    memory=[
        Show("y", "y", "the output of the forward pass"),
        Show("dy", "y", "the gradient of the output", "dy"),
        Show("dx", "x", "the gradient of the input", "dx"),
    ],
    state=[
        Show("y", "y", "the tile of the output", kept=True),
        Show("dy", "y", "the tile of its gradient", "dy", kept=True),
        Show("products", "", "products", "y · dy"),
        Show("delta", "", "their sum in each row", "row-dot"),
        Show("dx", "x", "y · (dy - row-dot)", "dx"),
    ],
    rows="offs_r",
    lines={
        "products = tl.zeros": (
            "Short rows share a program: this tile has two. Its sums start at 0."
        ),
        "dot: y_ptr + offs, mask": (
            "Load y, which forward has saved: {bytes} bytes. Each row adds up to 1, "
            f"and row 1 is nearly certain of column {COL}."
        ),
        "dot: dy_ptr + offs * stride_dyc": arrives,
        "products += ": products,
        "delta": row_dot,
        "y, dy = kept": "",
        "dx": gradient,
        "tl.store(dx_ptr": stored,
    },
    frames="each delta",
    program="rows 0 and 1",
    formulas={"read": "2 · R · C · b", "written": "R · C · b"},
    symbols=lambda y, **_: symbols(y),
    gain="Three matrices have moved, where PyTorch's operators move nine.",
)
