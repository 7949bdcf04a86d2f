"""Layer norm of whole rows: what becomes of the lane past the end."""

from typing import Any

import torch
import triton.language as tl

from snippets.companions.layer_norm import layer_norm_kernel
from tests.replays import Replay, Run, Show, Tensors

EPS = 1e-5
LANES = 4
ROWS = [[0.4, 1.9, -0.7], [1.5, -1.2, 0.3], [2.0, 2.2, 1.8], [0.0, 0.0, 3.0]]
VECTORS = {
    "weight": torch.tensor([1.0, 0.5, 2.0]),
    "bias": torch.tensor([0.0, 1.0, -1.0]),
}


def launch(
    kernel: Any, each: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> Tensors:
    """Some rows to each program, in tiles small enough to be seen."""
    rows, cols = x.shape
    y, (mean, rstd) = torch.empty_like(x), torch.empty(2, rows)
    kernel[(rows // each,)](
        *(x, weight, bias, y, mean, rstd, *x.stride(), 1, 1, rows, cols),
        EPS=EPS,
        COMPUTE=tl.float32,
        BLOCK_ROWS=each,
        BLOCK_COLS=LANES,
        FULL=cols % LANES == 0,
    )
    return {"y": y, "mean": mean, "rstd": rstd}


def expected(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Tensors:
    """What PyTorch makes of it."""
    variance, mean = torch.var_mean(x, dim=1, correction=0)
    y = torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, EPS)
    return {"y": y, "mean": mean, "rstd": (variance + EPS).rsqrt()}


REPLAY = Replay(
    call=lambda x, weight, bias: launch(layer_norm_kernel, 2, x, weight, bias),
    expected=expected,
    runs={
        "small": Run("Means near 1", {"x": torch.tensor(ROWS), **VECTORS}),
        "large": Run(
            "The same rows, 100 higher", {"x": torch.tensor(ROWS) + 100, **VECTORS}
        ),
    },
    memory=[
        Show("x", "x", "the input"),
        Show("weight", "", "a factor for each column", "weight"),
        Show("bias", "", "a summand for each column", "bias"),
        Show("y", "y", "the output"),
        Show("mean", "", "kept for the backward pass", "mean"),
        Show("rstd", "", "kept for the backward pass", "rstd"),
    ],
    state=[
        Show("x", "x", "the rows"),
        Show("first", "x", "the first element of each row", "first"),
        Show("mean", "", "the mean of each row, less the first element", "mean"),
        Show("centred", "x", "what is left without the mean", "centred"),
        Show("variance", "", "the mean of the squares of that", "variance"),
        Show("rstd", "", "1 / sqrt(variance + eps)", "rstd"),
        Show("y", "y", "the output"),
    ],
    rows="offs_r",
    lines={
        "load": (
            "Load rows {all.offs_r:{rows}}: {count} numbers, {bytes} bytes. The lane "
            "past the end of each row holds 0."
        ),
        "first": "Load the first element of each row again: {first} in row {row}.",
        "shift": (
            "Subtract the first element, {first} in row {row}. No distance between two "
            "elements changes. The lane past the end stays 0."
        ),
        "mean": (
            "The sum of row {row}, divided by its 3 columns and not by the 4 lanes, is "
            "{mean}. Add {first}, and it is the mean of the row."
        ),
        "centred": (
            "Subtract that mean. The lane past the end would hold 0 - {mean} now, so "
            "it is set to 0 again."
        ),
        "variance": "The mean of the squares is the variance: {variance} in row {row}.",
        "rstd": "One over the root of the variance: {rstd} in row {row}.",
        "weight": "Load the weight: {bytes} bytes, for both rows.",
        "bias = tl.load": "Load the bias: {bytes} bytes, for both rows.",
        "output": (
            "Multiply by rstd, which makes the variance of each row 1. Then multiply "
            "each column by its weight, and add its bias."
        ),
        "tl.store(y_ptr": "Store the {count} numbers of the output: {bytes} bytes.",
        "saved": "Store the mean of each row, with the shift added to it again.",
        "tl.store(rstd_ptr": "Store rstd of each row.",
    },
    frames="centred",
    program="program {0}",
    formulas={
        "read": "2 · R · C · b + R · b",
        "written": "R · C · b + 2 · R · b",
    },
    symbols=lambda x, weight, bias: {
        "R": x.shape[0],
        "C": x.shape[1],
        "b": x.element_size(),
    },
    gain="One load served both sums, and the backward pass sums neither.",
)
