"""The SVG of a line plot, once wide and once for a phone.

Its classes are in figures.css. Each line has its label at its end. A column of points
shows its values beside the labels while it is pointed at, tapped or focused, and the
last one does at rest: that is done by the stylesheet, because all values are drawn.
"""

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from verified_docs.pages.figures import BREAKS, beside, number, render

MARGIN = 14  # between the frame and the first and last column
ZEROS = re.compile(r"\.0+(?!\d)|^1(\.0+)?\u00a0\u00d7\u00a0(?=10)")  # of a round number
LEADING = 17  # from one line of a long name to the next
CHARACTER = 8  # the width of a digit
MARKERS = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "square": "M-4.5,-4.5h9v9h-9z",
    "triangle": "M0,-6L5.5,4.5h-11z",
    "diamond": "M0,-6.5L5.5,0L0,6.5L-5.5,0z",
    "wedge": "M0,6L5.5,-4.5h-11z",
    "cross": "M-5,-5L5,5M-5,5L5,-5",
    "plus": "M-6,0H6M0,-6V6",
    "bar": "M-6,-3h12v6h-12z",
}
SCALES: dict[str, Callable[[float], float]] = {
    "linear": lambda value: value,
    "log2": math.log2,
    "log10": math.log10,
}


@dataclass(frozen=True)
class Layout:
    """Where the parts of a drawing are, in its own pixels: the frame, the labels."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    row: int  # the height of a label
    below: int  # how far its value stands below its name
    letters: int  # how many a line of the name has room for

    def svg(self, label: str, drawn: str, role: str) -> str:
        """The element around a drawing: a group if its parts take the focus, or img."""
        return (
            f'<svg class="plot-{self.name}" viewBox="0 0 {self.width} {self.height}" '
            f'role="{role}" aria-label="{escape(label)}" data-search-exclude="">'
            f"{drawn}</svg>"
        )


WIDE = Layout("wide", 800, 400, 56, 585, 48, 344, row=20, below=0, letters=19)
NARROW = Layout("narrow", 328, 384, 46, 182, 54, 332, row=31, below=14, letters=18)
LAYOUTS = WIDE, NARROW


@dataclass(frozen=True)
class Line:
    """A line of a plot, from point to point."""

    name: str
    classes: str
    marker: str
    values: dict[Any, float]


@dataclass(frozen=True)
class Frame:
    """An x axis: its columns, and what it is called."""

    layout: Layout
    columns: list[Any]
    x_words: str
    x_scale: str = "linear"
    first: Sequence[Any] = ()  # columns whose numbers have room before those of others

    def x(self, value: float) -> float:
        """The horizontal position, from the first column at the left."""
        scale = SCALES[self.x_scale]
        low, high = (scale(self.columns[n]) for n in (0, -1))
        left, right = self.layout.left, self.layout.right
        inner = right - left - 2 * MARGIN
        return left + MARGIN + inner * (scale(value) - low) / (high - low or 1)

    def x_axis(self) -> Iterator[str]:
        """A tick for each column, its number where there is room, and what they are."""
        left, bottom = self.layout.left, self.layout.bottom
        taken: list[tuple[float, float]] = []
        yield f'<path class="plot-axis" d="M{left},{bottom}H{self.layout.right}"/>'
        for column in sorted(self.columns, key=lambda each: each not in self.first):
            x, shown = self.x(column), number(column)
            half = CHARACTER * len(shown) / 2
            yield f'<path class="plot-axis" d="M{x:.1f},{bottom}v5"/>'
            if all(abs(x - at) > half + other + CHARACTER for at, other in taken):
                taken.append((x, half))
                yield text(x, bottom + 20, shown, anchor="middle")
        yield text(left, bottom + 44, self.x_words, "plot-words")


@dataclass(frozen=True, kw_only=True)
class Plot(Frame):
    """Lines, and levels to compare them with, by an x and a y axis."""

    lines: list[Line]
    levels: dict[str, float]
    y_words: str
    y_scale: str
    form: str  # how values are shown

    @functools.cached_property
    def ticks(self) -> list[float]:
        """The numbers of the y axis."""
        values = [value for line in self.lines for value in line.values.values()]
        shown = [*values, *self.levels.values()]
        return round_ticks(max(shown)) if self.y_scale == "linear" else _powers(shown)

    @functools.cached_property
    def places(self) -> dict[str, float]:
        """How high each label stands: at the end of its line, clear of the others."""
        layout = self.layout
        last = {line.name: [*line.values.values()][-1] for line in self.lines}
        ends = {name: self.y(value) for name, value in (last | self.levels).items()}
        names = sorted(ends, key=ends.__getitem__)
        more = LEADING * (max(len(broken(name, layout)) for name in names) - 1)
        edges = layout.top, layout.bottom - layout.below - more
        places = spread([ends[n] for n in names], layout.row + more, *map(float, edges))
        return dict(zip(names, places, strict=True))

    def y(self, value: float) -> float:
        """The vertical position, from the first tick at the bottom."""
        scale = SCALES[self.y_scale]
        low, high = (scale(self.ticks[n]) for n in (0, -1))
        top, bottom = self.layout.top, self.layout.bottom
        return bottom - (bottom - top) * (scale(value) - low) / (high - low)

    def text(self, value: float) -> str:
        """A value without the unit that the axis has in its words."""
        return beside(self.y_words, value, self.form)

    def draw(self) -> str:
        """The inside of the SVG."""
        drawn = [*self._y_axis(), *self.x_axis(), *self._levels(), *self._lines()]
        # Said once, by the columns.
        return f'<g aria-hidden="true">{"".join(drawn)}</g>{"".join(self._columns())}'

    def _y_axis(self) -> Iterator[str]:
        """What the axis is, and a line with its number for each tick."""
        left, right = self.layout.left, self.layout.right
        yield text(0, 18, self.y_words, "plot-words")
        for tick in self.ticks:
            y, shown = self.y(tick), ZEROS.sub("", self.text(tick))
            yield f'<path class="plot-grid" d="M{left},{y:.1f}H{right}"/>'
            yield text(left - 6, y + 4, shown, anchor="end")

    def _label(self, name: str) -> str:
        x, y = self.layout.right + 34, self.places[name] + 4
        lines = enumerate(broken(name, self.layout))
        return "".join(text(x, y + n * LEADING, line) for n, line in lines)

    def _value(self, name: str) -> tuple[int, float, str]:
        """Where the value of a line stands, and which end of it.

        It is far right of the name, or below its last line.
        """
        layout, y = self.layout, self.places[name] + 4
        if not layout.below:
            return layout.width - 1, y, "end"
        more = LEADING * (len(broken(name, layout)) - 1)
        return layout.right + 34, y + layout.below + more, "start"

    def _levels(self) -> Iterator[str]:
        """What the lines are compared with, each with its label and value."""
        left, right = self.layout.left, self.layout.right
        for name, value in self.levels.items():
            y, (at, up, anchor) = self.y(value), self._value(name)
            yield (
                f'<path class="plot-level" d="M{left},{y:.1f}H{right}'
                f'l14,{self.places[name] - y:.1f}h14"/>{self._label(name)}'
            )
            yield text(at, up, self.text(value), anchor=anchor)

    def _lines(self) -> Iterator[str]:
        right = self.layout.right
        for line in self.lines:
            points = [(self.x(c), self.y(value)) for c, value in line.values.items()]
            route = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
            x, y = points[-1]
            place = self.places[line.name]
            marks = "".join(
                f'<path class="plot-mark" d="{line.marker}" '
                f'transform="translate({x:.1f},{y:.1f})"/>'
                for x, y in [*points, (right + 22, place)]
            )
            yield (
                f'<g class="{line.classes}"><path class="plot-line" d="M{route}"/>'
                f'<path class="plot-leader" d="M{x:.1f},{y:.1f}H{right}'
                f'L{right + 14},{place:.1f}"/>{marks}</g>{self._label(line.name)}'
            )

    def _columns(self) -> Iterator[str]:
        """What a column shows while it is looked at: its place, and all its values."""
        left, right, top = self.layout.left, self.layout.right, self.layout.top
        at = [self.x(column) for column in self.columns]
        between = ((one + other) / 2 for one, other in itertools.pairwise(at))
        edges = itertools.pairwise([left, *between, right])
        for column, x, (begin, end) in zip(self.columns, at, edges, strict=True):
            here = [line for line in self.lines if column in line.values]
            said = ", ".join(
                f"{line.name} {render(line.values[column], self.form)}"
                for line in sorted(here, key=lambda line: self.places[line.name])
            )
            value_x, _, anchor = self._value(self.lines[0].name)
            values = "".join(
                f'<tspan x="{value_x}" y="{self._value(line.name)[1]:.1f}">'
                f"{escape(self.text(line.values[column]))}</tspan>"
                for line in here
            )
            yield (
                f'<g class="plot-column" role="img" tabindex="0" '
                f'aria-label="{escape(f"{self.x_words} {number(column)}: {said}")}">'
                f'<rect x="{begin:.1f}" y="{top}" width="{end - begin:.1f}" '
                f'height="{self.layout.bottom - top + 24}"/>'
                f'<path d="M{x:.1f},{top}V{self.layout.bottom}"/>'
                f'<text text-anchor="{anchor}"><tspan x="{value_x}" '
                f'y="{top - 20}">at {escape(number(column))}</tspan>{values}</text></g>'
            )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    """Some words at a place, which is rounded if it was computed."""
    told = {"class": kind, "x": x, "y": y, "text-anchor": anchor}
    shown = "".join(
        f' {key}="{value:.1f}"' if isinstance(value, float) else f' {key}="{value}"'
        for key, value in told.items()
        if value != ""
    )
    return f"<text{shown}>{escape(words)}</text>"


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places from `low` to `high`, a gap apart, as near to the wanted ones as can be.

    The wanted ones ascend. What stands too close becomes a block around its mean.
    """
    blocks: list[list[float]] = []
    for n, place in enumerate(wanted):
        block = [place - n * gap]
        while blocks and fmean(blocks[-1]) > fmean(block):
            block = blocks.pop() + block
        blocks.append(block)
    high -= (len(wanted) - 1) * gap
    means = [fmean(block) for block in blocks for _ in block]
    return [max(low, min(mean, high)) + n * gap for n, mean in enumerate(means)]


def broken(name: str, layout: Layout) -> list[str]:
    """The name in lines that have room, broken where a word of it ends."""
    lines = [""]
    for word in BREAKS.split(name):
        if lines[-1] and len((lines[-1] + word).rstrip()) > layout.letters:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def round_ticks(top: float) -> list[float]:
    """From 0 to `top` or a little beyond, four to eight at a round distance."""
    power = 10.0 ** math.floor(math.log10(top / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if top / (power * m) <= 6)
    return [n * step for n in range(math.ceil(top / step - 1e-9) + 1)]


def _powers(values: list[float]) -> list[float]:
    """Powers of ten, from the one below the values to the one above them."""
    low, high = math.log10(min(values)), math.log10(max(values))
    return [10.0**power for power in range(math.floor(low), math.ceil(high) + 1)]
