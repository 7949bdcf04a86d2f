"""Measurements as tables and as SVG line plots, drawn at build time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import yaml

from verified_docs.evidence import Evidence
from verified_docs.figures import (
    FigureError,
    pointer,
    render,
    select,
    stale_measurement,
    unmeasured,
)

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 610, 44, 340
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
SHARED = {"record", "where", "only", "title", "format"}
PLOT = SHARED | {"x", "y", "series", "x_scale", "x_label", "y_label", "ceiling"}
TABLE = SHARED | {"rows", "columns", "value"}


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


def parse(body: str, allowed: set[str], *required: str) -> dict[str, Any]:
    """The options in a fence's YAML body. Raises FigureError."""
    try:
        options = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise FigureError(f"its body is not YAML: {error}") from None
    if not isinstance(options, dict):
        raise FigureError("its body is a YAML mapping, such as record: softmax")
    for key in options:
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise FigureError(f"there is no option {key!r}; the options are: {known}")
    for key in ("record", *required):
        if not isinstance(options.get(key), str):
            raise FigureError(f"it needs the option {key!r}")
    return options


def grid(
    evidence: Evidence, options: dict[str, Any], row: str, column: str, value: str
) -> Grid | None:
    """What the record has for the options; None if nothing. Raises FigureError."""
    record = evidence.data(options["record"])
    where = options.get("where") or {}
    found = select(record, where, row, column, value) if record else []
    only = [str(name) for name in options.get("only") or ()]
    rows = list(dict.fromkeys(str(item[row]) for item in found))
    rows = [name for name in only or rows if name in rows]
    values: dict[tuple[str, Any], float] = {}
    for item in found:
        key = (str(item[row]), item[column])
        if key[0] not in rows:
            continue
        if key in values:
            raise FigureError(
                f"several measurements for {row}={key[0]}, {column}={key[1]}: "
                "say more in where"
            )
        values[key] = item[value]
    if not values:
        return None
    columns = sorted({column for _, column in values})
    stale = {
        name for name in rows if stale_measurement(evidence, options["record"], name)
    }
    return Grid(rows, columns, values, stale)


def table(evidence: Evidence, body: str) -> str:
    """The fence ```measurements. Raises FigureError."""
    options = parse(body, TABLE, "rows", "columns", "value")
    form = options.get("format", "")
    _known(form)
    title = str(options.get("title", ""))
    found = grid(
        evidence, options, options["rows"], options["columns"], options["value"]
    )
    if found is None:
        return _absent(title or "Measurements")
    shown = _table(found, options["rows"], options["columns"], form, title)
    return f'<figure class="measurements">{shown}</figure>'


def plot(evidence: Evidence, body: str, prefix: str) -> str:
    """The fence ```plot, its ids starting with `prefix`. Raises FigureError."""
    options = parse(body, PLOT, "x", "y", "series", "title")
    form = options.get("format", "")
    if not form and options["y"].startswith("fraction"):
        form = "percent"
    _known(form)
    title = options["title"]
    found = grid(evidence, options, options["series"], options["x"], options["y"])
    if found is None:
        return _absent(title)
    if len(found.rows) > len(MARKERS):
        raise FigureError(f"{len(found.rows)} series; at most {len(MARKERS)}: use only")
    x_label = str(options.get("x_label", options["x"]))
    y_label = str(options.get("y_label", options["y"]))
    ceiling = _ceiling(evidence, options)
    svg = _svg(found, options.get("x_scale", "linear"), form, ceiling)
    legend = "".join(
        f'<li class="series-{n}"><svg viewBox="-14 -8 28 16" aria-hidden="true">'
        f'<path class="plot-line" d="M-14,0H14"/><path class="plot-mark" d="{mark}"/>'
        f"</svg>{escape(found.label(row))}</li>"
        for n, (row, mark) in enumerate(zip(found.rows, MARKERS, strict=False), 1)
    )
    numbers = _table(found, options["series"], x_label, form, "")
    return (
        f'<figure class="plot"><figcaption>{escape(title)}</figcaption>'
        f'<div class="scroll"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{prefix}title {prefix}desc">'
        f'<title id="{prefix}title">{escape(title)}</title>'
        f'<desc id="{prefix}desc">Lines of {escape(y_label)} against '
        f"{escape(x_label)} for {escape(', '.join(found.rows))}. "
        f"The same numbers are in the table after the plot.</desc>"
        f"{svg}{_axis_titles(x_label, y_label)}</svg></div>"
        f'<ul class="plot-legend">{legend}</ul>'
        f"<details><summary>Numbers of this plot</summary>{numbers}</details></figure>"
    )


def _known(form: str) -> None:
    if form:
        render(0, form)


def _absent(title: str) -> str:
    return f'<p class="no-record">{escape(title)}: {unmeasured()}</p>'


def _table(found: Grid, rows: str, columns: str, form: str, title: str) -> str:
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    head = "".join(f'<th scope="col">{_number(c)}</th>' for c in found.columns)
    body = ""
    for row in found.rows:
        cells = (found.values.get((row, column)) for column in found.columns)
        shown = "".join(
            "<td>not measured</td>"
            if value is None
            else f"<td>{escape(render(value, form))}</td>"
            for value in cells
        )
        body += (
            f'<tr><th scope="row"><code>{escape(found.label(row))}</code></th>'
            f"{shown}</tr>"
        )
    corner = f"{escape(rows)} \N{REVERSE SOLIDUS} {escape(columns)}"
    return (
        f'<div class="scroll"><table class="facts">{caption}<thead><tr>'
        f'<th scope="col">{corner}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _ceiling(evidence: Evidence, options: dict[str, Any]) -> tuple[float, str] | None:
    """The value and label of the option ceiling; a value "/..." is a JSON pointer."""
    option = options.get("ceiling")
    if option is None:
        return None
    if not isinstance(option, dict) or {"value", "label"} - option.keys():
        raise FigureError("ceiling is written {value: 1, label: copy}")
    value = option["value"]
    if isinstance(value, str):
        value = pointer(evidence.data(options["record"]) or {}, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FigureError(f"the ceiling {option['value']!r} is no number")
    return value, str(option["label"])


def _svg(
    found: Grid, x_scale: str, form: str, ceiling: tuple[float, str] | None
) -> str:
    """Axes, ceiling and lines."""
    if x_scale not in SCALES:
        known = ", ".join(SCALES)
        raise FigureError(f"{x_scale!r} is no scale; the scales are: {known}")
    scale = SCALES[x_scale]
    try:
        positions = [scale(x) for x in found.columns]
    except (TypeError, ValueError):
        reason = f"x holds {found.columns}, which x_scale: {x_scale} cannot place"
        raise FigureError(reason) from None
    low, high = positions[0], positions[-1]
    top = max([*found.values.values(), ceiling[0] if ceiling else 0])
    step = _step(top)
    limit = step * math.ceil(top / step - 1e-9)

    def place_x(x: float) -> float:
        if low == high:
            return (LEFT + RIGHT) / 2
        return LEFT + 16 + (RIGHT - LEFT - 32) * (scale(x) - low) / (high - low)

    def place_y(y: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * y / limit

    parts = []
    for n in range(round(limit / step) + 1):
        y = place_y(n * step)
        parts.append(
            f'<path class="plot-grid" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
            f'<text class="plot-text" x="{LEFT - 8}" y="{y + 5:.1f}" '
            f'text-anchor="end">{escape(render(n * step, form))}</text>'
        )
    last = -math.inf
    for x in found.columns:
        at, text = place_x(x), _number(x)
        parts.append(f'<path class="plot-axis" d="M{at:.1f},{BOTTOM}v5"/>')
        if at - last > 9 * len(text):
            parts.append(
                f'<text class="plot-text" x="{at:.1f}" y="{BOTTOM + 21}" '
                f'text-anchor="middle">{text}</text>'
            )
            last = at
    parts.append(f'<path class="plot-axis" d="M{LEFT},{BOTTOM}H{RIGHT}"/>')
    if ceiling:
        y = place_y(ceiling[0])
        parts.append(
            f'<path class="plot-ceiling" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
            f'<text class="plot-text" x="{RIGHT}" y="{y - 6:.1f}" '
            f'text-anchor="end">{escape(ceiling[1])}</text>'
        )
    for n, (row, mark) in enumerate(zip(found.rows, MARKERS, strict=False), 1):
        points = [
            (place_x(x), place_y(found.values[row, x]))
            for x in found.columns
            if (row, x) in found.values
        ]
        line = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks = "".join(
            f'<path class="plot-mark" d="{mark}" '
            f'transform="translate({x:.1f},{y:.1f})"/>'
            for x, y in points
        )
        parts.append(
            f'<g class="series-{n}"><path class="plot-line" d="M{line}"/>{marks}</g>'
        )
    return "".join(parts)


def _axis_titles(x_label: str, y_label: str) -> str:
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


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else escape(str(value))
