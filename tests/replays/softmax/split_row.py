"""Split rows: two programs store a pair each, and a second launch merges the pairs."""

import math

import torch

from snippets.softmax.split_row import softmax
from tests.replays import Replay, Run, Show
from tests.replays.sentences import Moment, spoken
from tests.replays.softmax.rows import INF, MASKED, MEMORY, RISING, expected, symbols

CHUNKS, CHUNK = 2, 4
COLS = CHUNKS * CHUNK


def begins(at: Moment) -> str:
    """Which columns a program has."""
    first = int(at.array("first"))
    return (
        f"The row has a program for each chunk. This one has chunk {{chunk}}, columns "
        f"{first} to {first + CHUNK - 1}. It starts with the maximum -∞ and the sum 0."
    )


def maximum(at: Moment) -> str:
    """The maximum of the chunk."""
    if float(at["m_new"]) == -INF:
        return "Every number of the chunk is -∞, and so is its maximum."
    return "The largest number of the chunk is {m_new}."


def guard(at: Moment) -> str:
    """Only where it does something is it worth a step."""
    if float(at["m_new"]) > -INF:
        return ""
    return (
        "The kernel will subtract 0 from these numbers and not their maximum, because "
        "-∞ minus -∞ is NaN."
    )


def added(at: Moment) -> str:
    """The sum of the chunk."""
    if float(at["m_new"]) == -INF:
        return "Each number adds exp(-∞) = 0: the sum stays 0."
    return "Each number x of the chunk adds exp(x - {m_new}): the sum is {l_i}."


def maxima(at: Moment) -> str:
    """Who merges."""
    if int(at.array("chunk")) == 0:
        return (
            "All pairs are stored, so the second launch may begin. Its program for "
            "chunk 0 loads the maxima of both chunks: {bytes} bytes."
        )
    return (
        "The program for chunk {chunk} merges the same pairs for itself, so it waits "
        "for nobody. Load both maxima: {bytes} bytes."
    )


def merged(at: Moment) -> str:
    """What becomes of the sum with the smaller maximum."""
    m_k, l_k = (at.array(name).tolist() for name in ("m_k", "l_k"))
    low, high = sorted(range(CHUNKS), key=m_k.__getitem__)
    old, factor = spoken(m_k[low]), spoken(math.exp(m_k[low] - m_k[high]))
    whole = f"{spoken(l_k[low])} · {factor} + {spoken(l_k[high])} = {{l_i}}"
    if m_k[low] == -INF:
        return (
            f"The maximum of chunk {low} is -∞, so its sum counts with the factor "
            f"exp(-∞ - {{m_i}}) = 0. The sum of the row is {whole}."
        )
    return (
        f"The sum of chunk {low} belongs to the maximum {old}. The factor exp({old} - "
        f"{{m_i}}) = {factor} moves it to {{m_i}}, so the sum of the row is {whole}."
    )


REPLAY = Replay(
    call=lambda x: {"y": softmax(x, chunks=CHUNKS, block_cols=CHUNK)},
    expected=expected,
    runs={
        "last": Run("Largest in the last chunk", {"x": torch.tensor([RISING[:COLS]])}),
        "masked": Run("A chunk of -∞", {"x": torch.tensor([MASKED[:COLS]])}),
    },
    memory=[
        MEMORY[0],
        Show("m", "m", "the maximum of each chunk", "all m"),
        Show("l", "l", "the sum of each chunk", "all l"),
        MEMORY[1],
    ],
    state=[
        Show("x", "x", "the chunk at hand"),
        Show("m_i", "m", "the largest number so far", "m"),
        Show("m_new", "m", "the largest with this tile", "new m"),
        Show("l_i", "l", "the sum of exp(x - m) so far"),
        Show("m_k", "m", "the maximum of each chunk", "all m"),
        Show("l_k", "l", "the sum of each chunk", "all l"),
        Show("m_row", "m", "the maximum of the row"),
        Show("l_row", "l", "the sum of the row"),
        Show("y", "y", "the weights of the chunk"),
    ],
    lines={
        "m_i = tl.full": "",
        "l_i = tl.full": begins,
        "partial: x = tl.load": "Load the chunk: {count} numbers, {bytes} bytes.",
        "max": maximum,
        "shift = tl.where": guard,
        "rescale": "",
        "sum": added,
        "m_i = m_new": "",
        "tl.store(m_ptr": "Store the maximum of the chunk, {m_i}: {bytes} bytes.",
        "tl.store(l_ptr": (
            "Store its sum, {l_i}: {bytes} bytes. This pair is all that the other "
            "chunks need of this one."
        ),
        "m_k = tl.load": maxima,
        "l_k = tl.load": "Load the sums of both chunks: {bytes} bytes.",
        "merge_max": "The larger of the two, {m_i}, is the maximum of the row.",
        "merge_sum": merged,
        "normalise: x = tl.load": (
            "Load chunk {chunk} again, {bytes} bytes, because the first launch "
            "kept only its pair."
        ),
        "output": (
            "Each number of the chunk becomes its weight exp(x - {m_i}) / {l_i}, with "
            "the pair of the whole row."
        ),
        "tl.store(y_ptr": "Store the {count} weights of the chunk, {bytes} bytes.",
    },
    frames="each axis=0)",
    program="chunk {1}",
    formulas={
        "read": "2 · R · C · b + R · K · 2 · K · b_l",
        "written": "R · C · b + 2 · R · K · b_l",
    },
    # The accumulators are of float32, as x is.
    symbols=lambda x: symbols(x) | {"K": CHUNKS, "b_l": x.element_size()},
    gain="Two programs shared the row, and each number was still read only twice.",
    names={"normalise_kernel.m_i": "m_row", "normalise_kernel.l_i": "l_row"},
)
