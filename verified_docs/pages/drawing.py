"""The SVG of a line plot: axes, ceiling and lines. Its classes are in figures.css."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from verified_docs.pages.figures import FigureError, render

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 610, 44, 340
MARGIN = 16  # between the frame and the first and last column
CHARACTER = 8  # the width of a digit
MARKERS = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "M-4.5,-4.5h9v9h-9z",
    "M0,-6L5.5,4.5h-11z",
    "M0,-6.5L5.5,0L0,6.5L-5.5,0z",
    "M0,6L5.5,-4.5h-11z",
    "M-5,-5L5,5M-5,5L5,-5",
    "M-6,0H6M0,-6V6",
    "M-6,-3h12v6h-12z",
)
SCALES: dict[str, Callable[[float], float]] = {
    "linear": lambda value: value,
    "log2": math.log2,
    "log10": math.log10,
}


@dataclass(frozen=True)
class Grid:
    """Measurements by row and column; a row whose file has changed is stale."""

    rows: list[str]
    columns: list[Any]
    values: dict[tuple[str, Any], float]
    stale: set[str]
    # Whose value it is, where a cell has the best of several.
    names: dict[tuple[str, Any], str] = field(default_factory=dict)

    def label(self, row: str) -> str:
        """The row's name, marked if it is stale."""
        return f"{row} (stale)" if row in self.stale else row


@dataclass(frozen=True)
class Frame:
    """Where numbers are on the drawing: `columns` across, `ticks` upwards."""

    x_scale: Callable[[float], float]
    y_scale: Callable[[float], float]
    columns: list[Any]
    ticks: list[float]

    def x(self, value: float) -> float:
        """The horizontal position; a single column is in the middle."""
        low, high = (self.x_scale(self.columns[n]) for n in (0, -1))
        if low == high:
            return (LEFT + RIGHT) / 2
        inner = RIGHT - LEFT - 2 * MARGIN
        return LEFT + MARGIN + inner * (self.x_scale(value) - low) / (high - low)

    def y(self, value: float) -> float:
        """The vertical position, from the first tick at the bottom."""
        low, high = (self.y_scale(self.ticks[n]) for n in (0, -1))
        return BOTTOM - (BOTTOM - TOP) * (self.y_scale(value) - low) / (high - low)


def draw(
    found: Grid,
    x_scale: str,
    y_scale: str,
    form: str,
    y_label: str,
    ceiling: tuple[float, str] | None,
) -> str:
    """Axes, ceiling and lines. Raises FigureError."""
    shown = [*found.values.values(), *([ceiling[0]] if ceiling else [])]
    across, up = _scale("x", x_scale, found.columns), _scale("y", y_scale, shown)
    ticks = _ticks(max(shown)) if y_scale == "linear" else _powers(y_scale, shown)
    frame = Frame(across, up, found.columns, ticks)
    drawn = [*_y_axis(frame, form, y_label), *_x_axis(frame)]
    if ceiling:
        drawn.append(_ceiling(frame, found, *ceiling))
    return "".join([*drawn, *_lines(frame, found)])


def _scale(axis: str, name: str, values: Iterable[Any]) -> Callable[[float], float]:
    """The scale of that name, which can place every value. Raises FigureError."""
    if name not in SCALES:
        known = ", ".join(SCALES)
        raise FigureError(f"{name!r} is no scale; the scales are: {known}")
    for value in values:
        try:
            SCALES[name](value) + 0
        except (TypeError, ValueError):
            reason = f"{axis} holds {value!r}, which {axis}_scale: {name} cannot place"
            raise FigureError(reason) from None
    return SCALES[name]


def _y_axis(frame: Frame, form: str, label: str) -> Iterator[str]:
    """A line for each tick, and its number, without the unit if that is the label."""
    for tick in frame.ticks:
        y, text = frame.y(tick), render(tick, form).removesuffix(f"\u00a0{label}")
        yield (
            f'<path class="plot-grid" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
            f'<text class="plot-text" x="{LEFT - 8}" y="{y + 5:.1f}" '
            f'text-anchor="end">{escape(text)}</text>'
        )


def _x_axis(frame: Frame) -> Iterator[str]:
    """A tick for each column, and its number where there is room."""
    yield f'<path class="plot-axis" d="M{LEFT},{BOTTOM}H{RIGHT}"/>'
    end = -math.inf
    for column in frame.columns:
        x, text = frame.x(column), number(column)
        half = CHARACTER * len(text) / 2
        yield f'<path class="plot-axis" d="M{x:.1f},{BOTTOM}v5"/>'
        if x - half > end + CHARACTER:
            end = x + half
            yield (
                f'<text class="plot-text" x="{x:.1f}" y="{BOTTOM + 21}" '
                f'text-anchor="middle">{text}</text>'
            )


def _ceiling(frame: Frame, found: Grid, value: float, label: str) -> str:
    """A line, and its label above that end of it which the lines stay away from."""
    y = frame.y(value)

    def room(end: Any) -> float:
        at_end = (v for (_, column), v in found.values.items() if column == end)
        return min((abs(frame.y(v) - (y - 10)) for v in at_end), default=HEIGHT)

    left = room(found.columns[0]) > room(found.columns[-1])
    x, anchor = (LEFT + 4, "start") if left else (RIGHT, "end")
    return (
        f'<path class="plot-ceiling" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
        f'<text class="plot-text" x="{x}" y="{y - 6:.1f}" '
        f'text-anchor="{anchor}">{escape(label)}</text>'
    )


def _lines(frame: Frame, found: Grid) -> Iterator[str]:
    for n, (row, mark) in enumerate(zip(found.rows, MARKERS, strict=False), 1):
        points = [
            f"{frame.x(column):.1f},{frame.y(found.values[row, column]):.1f}"
            for column in found.columns
            if (row, column) in found.values
        ]
        marks = "".join(
            f'<path class="plot-mark" d="{mark}" transform="translate({point})"/>'
            for point in points
        )
        yield (
            f'<g class="series-{n}"><path class="plot-line" d="M{"L".join(points)}"/>'
            f"{marks}</g>"
        )


def axis_titles(x_label: str, y_label: str) -> str:
    """What the axes are."""
    return (
        f'<text class="plot-text" x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 12}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
        f'<text class="plot-text" x="{LEFT - 56}" y="{TOP - 24}">'
        f"{escape(y_label)}</text>"
    )


def _ticks(top: float) -> list[float]:
    """From 0 to `top` or a little beyond, four to eight at a round distance."""
    if top <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(top / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if top / (power * m) <= 6)
    return [n * step for n in range(math.ceil(top / step - 1e-9) + 1)]


def _powers(scale: str, values: list[float]) -> list[float]:
    """Powers of the scale's base around the values, at most eight."""
    base = 2.0 if scale == "log2" else 10.0
    exponents = [SCALES[scale](value) for value in values]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents))
    step = max(1, math.ceil((high - low) / 7))
    steps = max(1, math.ceil((high - low) / step))
    return [base ** (low + n * step) for n in range(steps + 1)]


def number(value: Any) -> str:
    """A row length or a name, as HTML."""
    return f"{value:,}" if isinstance(value, int | float) else escape(str(value))
