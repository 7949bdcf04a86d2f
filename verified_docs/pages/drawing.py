"""The SVG of a line plot, once wide and once for a phone.

Its classes are in figures.css. Each line has its label at its end. A column of points
shows its values beside the labels while it is pointed at, tapped or focused, and the
last one does at rest: that is done by the stylesheet, because all values are drawn.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from verified_docs.pages.figures import BREAKS, Source, beside, render

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
class Grid:
    """Measurements by row and column."""

    rows: list[str]
    columns: list[Any]
    values: dict[tuple[str, Any], float]
    source: Source


@dataclass(frozen=True)
class Line:
    """A line of the plot, from point to point, or level at a value to compare with."""

    name: str
    classes: str
    marker: str
    values: dict[Any, float]


@dataclass(frozen=True)
class Plot:
    """What is drawn, and what the axes are called and how their values are shown."""

    lines: list[Line]
    levels: dict[str, float]
    columns: list[Any]
    x_scale: str
    y_scale: str
    x_words: str
    y_words: str
    form: str
    ticks: Sequence[Any] = ()  # columns whose numbers are shown before those of others

    def text(self, value: float) -> str:
        """A value without the unit that the axis has in its words."""
        return beside(self.y_words, value, self.form)


@dataclass(frozen=True)
class Frame:
    """Where numbers are on the drawing: `columns` across, `ticks` upwards."""

    layout: Layout
    x_scale: Callable[[float], float]
    y_scale: Callable[[float], float]
    columns: list[Any]
    ticks: list[float]

    def x(self, value: float) -> float:
        """The horizontal position, from the first column at the left."""
        low, high = (self.x_scale(self.columns[n]) for n in (0, -1))
        left, right = self.layout.left, self.layout.right
        inner = right - left - 2 * MARGIN
        return left + MARGIN + inner * (self.x_scale(value) - low) / (high - low or 1)

    def y(self, value: float) -> float:
        """The vertical position, from the first tick at the bottom."""
        low, high = (self.y_scale(self.ticks[n]) for n in (0, -1))
        top, bottom = self.layout.top, self.layout.bottom
        return bottom - (bottom - top) * (self.y_scale(value) - low) / (high - low)


def draw(plot: Plot, layout: Layout) -> str:
    """The inside of the SVG."""
    values = [value for line in plot.lines for value in line.values.values()]
    shown = [*values, *plot.levels.values()]
    linear = plot.y_scale == "linear"
    ticks = round_ticks(max(shown)) if linear else _powers(shown)
    x_scale, y_scale = SCALES[plot.x_scale], SCALES[plot.y_scale]
    frame = Frame(layout, x_scale, y_scale, plot.columns, ticks)
    places = dict(_places(plot, frame))
    drawn = "".join(
        [
            *_y_axis(plot, frame),
            *x_axis(frame, plot.x_words, plot.ticks),
            *_levels(plot, frame, places),
            *_lines(plot, frame, places),
        ]
    )
    # Said once, by the columns.
    return f'<g aria-hidden="true">{drawn}</g>' + "".join(_columns(plot, frame, places))


def _y_axis(plot: Plot, frame: Frame) -> Iterator[str]:
    """What the axis is, and a line with its number for each tick."""
    layout = frame.layout
    yield f'<text class="plot-words" x="0" y="18">{escape(plot.y_words)}</text>'
    for tick in frame.ticks:
        y, text = frame.y(tick), ZEROS.sub("", plot.text(tick))
        yield (
            f'<path class="plot-grid" d="M{layout.left},{y:.1f}H{layout.right}"/>'
            f'<text x="{layout.left - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(text)}</text>"
        )


def x_axis(frame: Frame, words: str, first: Sequence[Any] = ()) -> Iterator[str]:
    """A tick for each column, its number where there is room, and what they are.

    The columns `first` choose their room before the others.
    """
    layout = frame.layout
    taken: list[tuple[float, float]] = []
    yield f'<path class="plot-axis" d="M{layout.left},{layout.bottom}H{layout.right}"/>'
    for column in sorted(frame.columns, key=lambda column: column not in first):
        x, text = frame.x(column), number(column)
        half = CHARACTER * len(text) / 2
        yield f'<path class="plot-axis" d="M{x:.1f},{layout.bottom}v5"/>'
        if all(abs(x - at) > half + other + CHARACTER for at, other in taken):
            taken.append((x, half))
            yield (
                f'<text x="{x:.1f}" y="{layout.bottom + 20}" text-anchor="middle">'
                f"{text}</text>"
            )
    yield (
        f'<text class="plot-words" x="{layout.left}" y="{layout.bottom + 44}">'
        f"{escape(words)}</text>"
    )


def _places(plot: Plot, frame: Frame) -> Iterator[tuple[str, float]]:
    """How high each label stands: at the end of its line, and clear of the others."""
    layout = frame.layout
    ends = {line.name: frame.y(list(line.values.values())[-1]) for line in plot.lines}
    ends |= {name: frame.y(value) for name, value in plot.levels.items()}
    names = sorted(ends, key=ends.__getitem__)
    more = LEADING * (max(len(broken(name, layout)) for name in names) - 1)
    low, high = layout.top, layout.bottom - layout.below - more
    places = spread([ends[n] for n in names], layout.row + more, low, high)
    yield from zip(names, places, strict=True)


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


def _label(layout: Layout, places: dict[str, float], name: str) -> str:
    x, y = layout.right + 34, places[name] + 4
    return "".join(
        f'<text x="{x}" y="{y + n * LEADING:.1f}">{escape(line)}</text>'
        for n, line in enumerate(broken(name, layout))
    )


def _beside(layout: Layout, places: dict[str, float], name: str) -> float:
    """How high the value of a line stands: beside its name, or below the last line."""
    more = LEADING * (len(broken(name, layout)) - 1) if layout.below else 0
    return places[name] + 4 + layout.below + more


def _levels(plot: Plot, frame: Frame, places: dict[str, float]) -> Iterator[str]:
    """What the lines are compared with, each with its label and value."""
    layout = frame.layout
    for name, value in plot.levels.items():
        y, up = frame.y(value), _beside(layout, places, name)
        x, anchor = _value(layout)
        yield (
            f'<path class="plot-level" d="M{layout.left},{y:.1f}H{layout.right}'
            f'l14,{places[name] - y:.1f}h14"/>{_label(layout, places, name)}'
            f'<text x="{x}" y="{up:.1f}" text-anchor="{anchor}">'
            f"{escape(plot.text(value))}</text>"
        )


def _lines(plot: Plot, frame: Frame, places: dict[str, float]) -> Iterator[str]:
    layout = frame.layout
    for line in plot.lines:
        points = [(frame.x(c), frame.y(value)) for c, value in line.values.items()]
        route = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        x, y = points[-1]
        place = places[line.name]
        marks = "".join(
            f'<path class="plot-mark" d="{line.marker}" '
            f'transform="translate({x:.1f},{y:.1f})"/>'
            for x, y in [*points, (layout.right + 22, place)]
        )
        yield (
            f'<g class="{line.classes}"><path class="plot-line" d="M{route}"/>'
            f'<path class="plot-leader" d="M{x:.1f},{y:.1f}H{layout.right}'
            f'L{layout.right + 14},{place:.1f}"/>{marks}</g>'
            f"{_label(layout, places, line.name)}"
        )


def _value(layout: Layout) -> tuple[int, str]:
    """Where values stand, and which end of them: below the name, or far right."""
    if layout.below:
        return layout.right + 34, "start"
    return layout.width - 1, "end"


def _columns(plot: Plot, frame: Frame, places: dict[str, float]) -> Iterator[str]:
    """What each column shows while it is looked at: its place, and all its values."""
    layout = frame.layout
    at = [frame.x(column) for column in plot.columns]
    between = ((one + other) / 2 for one, other in itertools.pairwise(at))
    edges = [layout.left, *between, layout.right]
    value_x, anchor = _value(layout)
    for n, column in enumerate(plot.columns):
        here = [line for line in plot.lines if column in line.values]
        said = ", ".join(
            f"{line.name} {render(line.values[column], plot.form)}"
            for line in sorted(here, key=lambda line: places[line.name])
        )
        values = "".join(
            f'<tspan x="{value_x}" y="{_beside(layout, places, line.name):.1f}">'
            f"{escape(plot.text(line.values[column]))}</tspan>"
            for line in here
        )
        yield (
            f'<g class="plot-column" role="img" tabindex="0" '
            f'aria-label="{escape(plot.x_words)} {number(column)}: {escape(said)}">'
            f'<rect x="{edges[n]:.1f}" y="{layout.top}" '
            f'width="{edges[n + 1] - edges[n]:.1f}" '
            f'height="{layout.bottom - layout.top + 24}"/>'
            f'<path d="M{at[n]:.1f},{layout.top}V{layout.bottom}"/>'
            f'<text text-anchor="{anchor}"><tspan x="{value_x}" '
            f'y="{layout.top - 20}">at {number(column)}</tspan>{values}</text></g>'
        )


def round_ticks(top: float) -> list[float]:
    """From 0 to `top` or a little beyond, four to eight at a round distance."""
    power = 10.0 ** math.floor(math.log10(top / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if top / (power * m) <= 6)
    return [n * step for n in range(math.ceil(top / step - 1e-9) + 1)]


def _powers(values: list[float]) -> list[float]:
    """Powers of ten around the values, at most eight."""
    exponents = [math.log10(value) for value in values]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents))
    step = max(1, math.ceil((high - low) / 7))
    steps = max(1, math.ceil((high - low) / step))
    return [10.0 ** (low + n * step) for n in range(steps + 1)]


def number(value: Any) -> str:
    """A row length or a name, as HTML."""
    return f"{value:,}" if isinstance(value, int | float) else escape(str(value))
