"""The SVG of a line plot: axes, ceiling and lines. Its classes are in figures.css."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from verified_docs.figures import FigureError, render

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

    def label(self, row: str) -> str:
        """The row's name, marked if it is stale."""
        return f"{row} (stale)" if row in self.stale else row


@dataclass(frozen=True)
class Frame:
    """Where numbers are on the drawing."""

    scale: Callable[[float], float]
    low: float
    high: float
    step: float
    steps: int

    def x(self, value: float) -> float:
        """The horizontal position; a single column is in the middle."""
        low, high = self.scale(self.low), self.scale(self.high)
        if low == high:
            return (LEFT + RIGHT) / 2
        inner = RIGHT - LEFT - 2 * MARGIN
        return LEFT + MARGIN + inner * (self.scale(value) - low) / (high - low)

    def y(self, value: float) -> float:
        """The vertical position, from 0 at the bottom."""
        return BOTTOM - (BOTTOM - TOP) * value / (self.step * self.steps)


def draw(
    found: Grid, x_scale: str, form: str, ceiling: tuple[float, str] | None
) -> str:
    """Axes, ceiling and lines. Raises FigureError."""
    if x_scale not in SCALES:
        known = ", ".join(SCALES)
        raise FigureError(f"{x_scale!r} is no scale; the scales are: {known}")
    scale = SCALES[x_scale]
    try:
        for x in found.columns:
            scale(x) + 0
    except (TypeError, ValueError):
        reason = f"x holds {found.columns}, which x_scale: {x_scale} cannot place"
        raise FigureError(reason) from None
    top = max([*found.values.values(), ceiling[0] if ceiling else 0])
    step = _step(top)
    steps = max(1, math.ceil(top / step - 1e-9))
    frame = Frame(scale, found.columns[0], found.columns[-1], step, steps)
    drawn = [*_y_axis(frame, form), *_x_axis(frame, found.columns)]
    if ceiling:
        drawn.append(_ceiling(frame, *ceiling))
    return "".join([*drawn, *_lines(frame, found)])


def _y_axis(frame: Frame, form: str) -> Iterator[str]:
    for n in range(frame.steps + 1):
        y = frame.y(n * frame.step)
        yield (
            f'<path class="plot-grid" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
            f'<text class="plot-text" x="{LEFT - 8}" y="{y + 5:.1f}" '
            f'text-anchor="end">{escape(render(n * frame.step, form))}</text>'
        )


def _x_axis(frame: Frame, columns: list[Any]) -> Iterator[str]:
    """A tick for each column, and its number where there is room."""
    yield f'<path class="plot-axis" d="M{LEFT},{BOTTOM}H{RIGHT}"/>'
    end = -math.inf
    for column in columns:
        x, text = frame.x(column), number(column)
        half = CHARACTER * len(text) / 2
        yield f'<path class="plot-axis" d="M{x:.1f},{BOTTOM}v5"/>'
        if x - half > end + CHARACTER:
            end = x + half
            yield (
                f'<text class="plot-text" x="{x:.1f}" y="{BOTTOM + 21}" '
                f'text-anchor="middle">{text}</text>'
            )


def _ceiling(frame: Frame, value: float, label: str) -> str:
    y = frame.y(value)
    return (
        f'<path class="plot-ceiling" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
        f'<text class="plot-text" x="{RIGHT}" y="{y - 6:.1f}" '
        f'text-anchor="end">{escape(label)}</text>'
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


def _step(top: float) -> float:
    """A round distance between four to eight grid lines up to `top`."""
    if top <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(top / 4))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if top / (power * m) <= 6)


def number(value: Any) -> str:
    """A row length or a name, as HTML."""
    return f"{value:,}" if isinstance(value, int | float) else escape(str(value))
