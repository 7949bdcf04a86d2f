"""Dropout without a mask: what an element draws depends on the seed and its index."""

from functools import partial

import numpy as np
import torch

from snippets.companions.seeded_dropout import dropout
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.sentences import Moment, spoken
from tests.snippets.companions.philox import kept_elements, kept_share

P = 0.4
NUMBERS = 65536
THRESHOLD = round(P * NUMBERS)
X = torch.tensor(
    [
        [0.6, -1.2, 0.9, 1.5, -0.3, 2.1, -0.9, 0.3],
        [-1.5, 0.9, 1.2, -0.6, 1.8, 0.3, -2.1, 0.6],
    ]
)
DY = torch.tensor(
    [
        [-0.3, 0.6, 1.2, -0.9, 0.3, -0.6, 1.5, 0.9],
        [0.3, -1.2, 0.6, 1.8, -0.3, 0.9, 0.6, -1.5],
    ]
)


def inputs(x: torch.Tensor, seed: int) -> Tensors:
    """The elements, and the seed, which the launch is given as an int."""
    return {"x": x, "seed": torch.tensor(seed)}


def call(x: torch.Tensor, seed: torch.Tensor, block: int = 8) -> Tensors:
    """One launch; the backward pass launches the same kernel for dy."""
    return {"y": dropout(x, p=P, seed=int(seed), block=block)}


def expected(x: torch.Tensor, seed: torch.Tensor) -> Tensors:
    """What a Philox in NumPy keeps, divided by its share."""
    kept = kept_elements(x.numel(), p=P, seed=int(seed), device="cpu").view(x.shape)
    return {"y": torch.where(kept, x / kept_share(P), 0)}


def shared(at: Moment) -> str:
    """Which counters the elements have."""
    here = ", then ".join(map(str, at.array("counter")))
    return f"The counter of an element is index // 8, so eight share one, here {here}."


def words(at: Moment) -> str:
    """What Philox makes of each counter."""
    counters = at.array("counter")
    drawn = [at.array(f"r{n}").astype(np.uint32) for n in range(4)]
    told = " and ".join(
        f"counter {counter} gives {', '.join(f'{word:08x}' for word in four)}"
        for counter, *four in zip(counters, *drawn, strict=True)
    )
    text = (
        f"Philox mixes the seed, {at.array('seed')}, with the counter into four words "
        f"of 32 bits: {told}."
    )
    if len(counters) == 1:
        text += " Whoever asks again gets the same words."
    return text


def examples(kept: np.ndarray) -> tuple[int, int]:
    """Places in a tile: the first that is dropped, the first that stays after it."""
    dropped = int(np.argmin(kept))
    return dropped, dropped + int(np.argmax(kept[dropped:]))


def numbers(at: Moment) -> str:
    """What two elements draw, and what follows from it."""
    drawn, first = at.array("return"), 8 * int(at.array("counter")[0])
    dropped, stays = (
        f"Element {first + place} draws about {spoken(drawn[place])}, or "
        f"{drawn[place] / NUMBERS:.2f} · {NUMBERS}"
        for place in examples(drawn >= THRESHOLD)
    )
    return (
        f"Each word is cut in two: a number for each element. {dropped}: below p = {P},"
        f" so it will be dropped. {stays}, and stays."
    )


def scaled(at: Moment) -> str:
    """What becomes of the same two elements."""
    index, x, y = (at.array(name) for name in ("index", "x", "y"))
    dropped, stays = examples(at.array("keep"))
    text = (
        f"Element {index[dropped]}, which was {spoken(x[dropped])}, becomes 0, because "
        f"its keep is 0. Element {index[stays]} is multiplied: {spoken(x[stays])} "
        f"becomes {spoken(y[stays])}."
    )
    if len(index) > 8:
        text += " Elements 8 to 15 become what program 1 makes of them with BLOCK = 8."
    return text


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "eight": Run("BLOCK = 8", inputs(X, 2026)),
        "sixteen": Run("BLOCK = 16", inputs(X, 2026), partial(call, block=16)),
        "backward": Run("backward: x is dy", inputs(DY, 2026)),
        "other": Run("seed 2027", inputs(X, 2027)),
    },
    memory=[Show("x", "x", "the input"), Show("y", "y", "the output")],
    state=[
        Show("counter", "", "one for eight elements", turned=True),
        Show("index", "", "of each element", turned=True),
        Show("return", "", "from 0 to 65535, rounded", "number", kept=True),
        Show("keep", "", "1 if it stays", turned=True),
        Show("x", "x", "the input", turned=True),
        Show("y", "y", "the output", turned=True),
    ],
    rows="return",
    lines={
        "index = first": (
            "Program {program} has elements {all.index:{size}} of x.flatten(). The "
            "number that each will draw depends on this index and on the seed, and on "
            "nothing else."
        ),
        "counter": shared,
        "x = tl.load": "Load these {count} elements of x: {bytes} bytes.",
        "keep": (
            "Which of them stay? There is no mask to load. So draw() makes a number "
            f"from 0 to {NUMBERS - 1} for each element. If it is below {THRESHOLD}, as "
            f"p = {P} of these numbers are, the element will be dropped."
        ),
        "philox": words,
        "halves": numbers,
        "scale": (
            f"What stays will be multiplied by {NUMBERS} / ({NUMBERS} - {THRESHOLD}), "
            "which is 1 / (1 - p) = {scale}. So the mean over many masks is x."
        ),
        "y = tl.where": scaled,
        "tl.store": "Store these {count} elements of y: {bytes} bytes.",
    },
    frames="halves",
    program="program {0}",
    formulas={"read": "n · b", "written": "n · b"},
    symbols=lambda x, seed: {"n": x.numel(), "b": x.element_size()},
    gain="The mask is not stored: seed and index will give it again.",
)
