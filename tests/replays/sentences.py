"""What a sentence of a replay may say, and how numbers look in it."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.replays import Sentence
from tests.replays.watch import Line, Locals

DIGITS = 3


class StoryError(ValueError):
    """A description that does not fit what ran; the message says where."""


class Value:
    """A number or an array in a sentence; of an array with rows, the row at hand.

    {all.offs_m:{seq_q}} is its numbers below another one: the rows of a tile that
    exist, as "4 to 5".
    """

    def __init__(self, data: np.ndarray, row: int | None = None) -> None:
        self.data = data if row is None or not data.ndim else data[row]

    def __format__(self, form: str) -> str:
        if form:
            inside = self.data[self.data < int(form)]
            return f"{inside.min()} to {inside.max()}"
        return ", ".join(spoken(each) for each in self.data.reshape(-1))

    def __float__(self) -> float:
        return float(self.data.item())

    @property
    def max(self) -> "Value":
        """The largest."""
        return Value(self.data.max())

    @property
    def sum(self) -> "Value":
        """The sum."""
        return Value(self.data.sum())


class Names:
    """Variables as attributes."""

    def __init__(self, values: Locals, row: int | None) -> None:
        self._values, self._row = values, row

    def __getattr__(self, name: str) -> Value:
        if name not in self._values:
            known = ", ".join(sorted(self._values))
            raise StoryError(f"a sentence speaks of {name}; there are {known}")
        return Value(self._values[name], self._row)


class Moment(Mapping[str, Any]):
    """What a sentence may speak of.

    Local variables by name, after the line, of the row at hand; {before.m_i}, before
    it; {all.offs_m}, of all rows; {row}, the row at hand; {program}; {tile}, how many
    tiles of this loop there were; {count} and {bytes} that the line loads or stores.
    """

    def __init__(
        self, line: Line, row: int | None, rows: str, facts: dict[str, Any]
    ) -> None:
        self.line, self.row = line, row
        self.facts = {**facts, "before": Names(line.before, row)}
        self.facts["all"] = Names(line.after, None)
        if row is not None and rows in line.after:
            self.facts["row"] = int(line.after[rows].reshape(-1)[row])

    def __getitem__(self, name: str) -> Any:
        if name in self.facts:
            return self.facts[name]
        return getattr(Names(self.line.after, self.row), name)

    def __iter__(self) -> Iterator[str]:
        return iter({**self.facts, **self.line.after})

    def __len__(self) -> int:
        return len({**self.facts, **self.line.after})

    def array(self, name: str) -> np.ndarray:
        """A variable after the line, whole."""
        return self.line.after[name]

    def rises(self, old: str, new: str) -> bool:
        """Whether, in the row at hand, one variable was below the other one now."""
        return float(getattr(self["before"], old)) < float(self[new])

    def say(self, sentence: Sentence) -> str:
        """The sentence with its values."""
        text = sentence(self) if callable(sentence) else sentence
        return typeset(text.format_map(self))


def number(value: float) -> float | int | str:
    """A number as the record has it."""
    value = float(value)
    if not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) else short


def spoken(value: float) -> str:
    """A number as a sentence has it."""
    text = str(number(value)).replace("inf", "∞").replace("nan", "NaN")
    return typeset(text)


def listed(each: Sequence[object]) -> str:
    """All of them, as "0, 1 and 2"."""
    *others, last = map(str, each)
    return f"{', '.join(others)} and {last}" if others else last


def span(what: str, first: int, last: int) -> str:
    """Things in a row, as "keys 0 to 3", "keys 0 and 1" or "key 0"."""
    between = "and" if last == first + 1 else "to"
    return f"{what} {first}" if first == last else f"{what}s {first} {between} {last}"


def typeset(text: str) -> str:
    """The text with signs for minus instead of hyphens."""
    return re.sub(r"(?<= )-(?= )|(?<!\w)-(?=[\d∞.])", "\N{MINUS SIGN}", text)
