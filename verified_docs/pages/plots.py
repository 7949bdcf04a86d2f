"""Measurements as tables and as SVG line plots, drawn at build time."""

import re
from html import escape
from typing import Any

import yaml

from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures
from verified_docs.pages.drawing import (
    HEIGHT,
    MARKERS,
    WIDTH,
    Grid,
    axis_titles,
    draw,
    number,
)
from verified_docs.pages.figures import FigureError, NotYet, render, unit, unmeasured

SHARED = {"record", "part", "where", "only", "title", "format"}
PLOT = SHARED | {"x", "y", "series", "ceiling"}
PLOT |= {"x_scale", "y_scale", "x_label", "y_label"}
TABLE = SHARED | {"rows", "columns", "value", "best", "bare"}


def parse(body: str, allowed: set[str], *required: str) -> dict[str, Any]:
    """The options in a fence's YAML body. Raises FigureError."""
    try:
        options = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise FigureError(f"its body is not YAML: {error}") from None
    if not isinstance(options, dict):
        raise FigureError(f"its body is a YAML mapping with {required[0]}")
    for key in options:
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise FigureError(f"there is no option {key!r}; the options are: {known}")
    for key in required:
        if not isinstance(options.get(key), str):
            raise FigureError(f"it needs the option {key!r}")
    return options


def grid(
    evidence: Evidence, options: dict[str, Any], row: str, column: str, value: str
) -> Grid:
    """What the record has for the options.

    Measurements lie in the record's list `measurements`, or in the one named `part`.
    With the option `best: kernel`, a cell has the largest value of several kernels.
    Raises FigureError, or NotYet where that is nothing so far.
    """
    name = options["record"]
    where = dict(options.get("where") or {})
    if "part" in options:
        where["part"] = options["part"]
    best = options.get("best")
    keys = [row, column, value, *([best] if best else [])]
    only = [str(each) for each in options.get("only") or ()]
    with figures.maybe_newer(evidence, name):
        found = figures.select(evidence, name, where, *keys)
        if best or row == "kernel":
            only = [e for e in only if figures.known_kernel(evidence, found, e)]
    names: dict[tuple[str, Any], str] = {}
    if best:
        found = _best([item for item in found if str(item[best]) in only], *keys[:3])
        names = {(str(item[row]), item[column]): str(item[best]) for item in found}
        only = []
    rows = list(dict.fromkeys(str(item[row]) for item in found))
    rows = [each for each in only or rows if each in rows]
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
        raise NotYet
    columns = sorted({column for _, column in values})
    changed = {k for k in {*rows, *names.values()} if figures.stale(evidence, name, k)}
    return Grid(rows, columns, values, changed, names)


def _best(
    found: list[dict[str, Any]], row: str, column: str, value: str
) -> list[dict[str, Any]]:
    """Of the measurements of each cell the one with the largest value."""
    by_value = sorted(found, key=lambda item: float(item[value]))
    best = {(item[row], item[column]): item for item in by_value}
    return [item for item in found if best[item[row], item[column]] is item]


def table(evidence: Evidence, body: str) -> str:
    """The fence ```measurements. Raises FigureError.

    With the option `bare: true` the cells are without their unit: the title has it.
    """
    options = parse(body, TABLE, "record", "rows", "columns", "value")
    form = unit(options["value"], str(options.get("format", "")))
    title = str(options.get("title", ""))
    if options.get("bare") and form == "bytes":
        raise FigureError("bytes have a unit of their own in each cell: not bare")
    if "best" in options and not options.get("only"):
        raise FigureError("with best it needs the option 'only': of whom")
    rows, columns = options["rows"], options["columns"]
    try:
        found = grid(evidence, options, rows, columns, options["value"])
    except NotYet:
        return _absent(title or "Measurements")
    shown = _table(found, rows, columns, form, title)
    if options.get("bare"):
        shown = re.sub(r"\u00a0[^<]+(?=</td>)", "", shown)
    return f'<figure class="measurements">{shown}</figure>'


def plot(evidence: Evidence, body: str, prefix: str) -> str:
    """The fence ```plot, its ids starting with `prefix`. Raises FigureError."""
    options = parse(body, PLOT, "record", "x", "y", "series", "title")
    form = unit(options["y"], str(options.get("format", "")))
    title = options["title"]
    try:
        found = grid(evidence, options, options["series"], options["x"], options["y"])
    except NotYet:
        return _absent(title)
    if len(found.rows) > len(MARKERS):
        raise FigureError(f"{len(found.rows)} series; at most {len(MARKERS)}: use only")
    x_label = str(options.get("x_label", options["x"]))
    y_label = str(options.get("y_label", options["y"]))
    ceiling = _ceiling(evidence, options)
    x_scale, y_scale = (
        str(options.get(key, "linear")) for key in ("x_scale", "y_scale")
    )
    svg = draw(found, x_scale, y_scale, form, y_label, ceiling)
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
        f"{svg}{axis_titles(x_label, y_label)}</svg></div>"
        f'<ul class="plot-legend">{legend}</ul>'
        f"<details><summary>Numbers of this plot</summary>{numbers}</details></figure>"
    )


def _absent(title: str) -> str:
    return f'<p class="no-record">{escape(title)}: {unmeasured()}</p>'


def _table(found: Grid, rows: str, columns: str, form: str, title: str) -> str:
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    head = "".join(f'<th scope="col">{number(c)}</th>' for c in found.columns)
    body = ""
    for row in found.rows:
        shown = "".join(_cell(found, (row, column), form) for column in found.columns)
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


def _cell(found: Grid, key: tuple[str, Any], form: str) -> str:
    if key not in found.values:
        return "<td>not measured</td>"
    shown = escape(render(found.values[key], form))
    if key in found.names:
        name = found.names[key]
        stem = name.rpartition("/")[2].removesuffix(".py")
        mark = " (stale)" if name in found.stale else ""
        shown = f"<code>{escape(stem)}</code>{mark} {shown}"
    return f"<td>{shown}</td>"


def _ceiling(evidence: Evidence, options: dict[str, Any]) -> tuple[float, str] | None:
    """The value and label of the option ceiling; a value "/..." is a JSON pointer."""
    option = options.get("ceiling")
    if option is None:
        return None
    if not isinstance(option, dict) or {"value", "label"} - option.keys():
        raise FigureError("ceiling is written {value: 1, label: copy}")
    value = option["value"]
    if isinstance(value, str):
        value = figures.pointer(figures.record(evidence, options["record"]), value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FigureError(f"the ceiling {option['value']!r} is no number")
    return value, str(option["label"])
