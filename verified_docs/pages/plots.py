"""Measurements as tables, heat maps and SVG line plots, drawn at build time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import drawing, figures, sources
from verified_docs.pages.drawing import MARKERS, Line, Plot, number
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import NotYet, beside, breakable, render, unit

SHARED = {"record", "part", "where", "only", "title", "format"}
PLOT = SHARED | {"x", "y", "series", "levels", "x_scale", "y_scale", "each", "ticks"}
TABLE = SHARED | {"rows", "columns", "value", "values"}
SEVERAL = SHARED - {"format"} | {"rows", "values"}
HEAT = SHARED | {"rows", "columns", "value", "against"}
KINDS: dict[str, type] = dict.fromkeys(("levels", "steps", "values", "where"), dict)
KINDS |= {"against": list, "only": list, "ticks": list}  # All others are text.
Cells = dict[tuple[Any, Any], dict[str, Any]]  # a measurement by row and column
SHADES = ("under 60\u00a0%", "60 to 70", "70 to 80", "80 to 90", "90 to 100", "faster")


@dataclass(frozen=True)
class Grid:
    """Measurements by row and column."""

    rows: list[str]
    columns: list[Any]
    values: dict[tuple[str, Any], float]
    source: figures.Source
    libraries: set[str]  # rows that are no kernels of ours


@dataclass(frozen=True)
class Style:
    """How every plot of the site shows a kernel, and what it calls an axis.

    A kernel has a colour, --series-1 and so on in colours.css, and a marker.
    """

    kernels: Mapping[str, tuple[int, str]]
    axes: Mapping[str, str]
    spans: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of(self, name: str, table: str) -> Any:
        """What a table has for a name: kernel, axis or span. Raises PageError."""
        if name not in (known := getattr(self, table)):
            raise PageError(f"{name!r} is not in mkdocs.yml, plots: {table}")
        return known[name]

    def line(self, found: Grid, series: str, row: str) -> Line:
        """A row of the plot: a kernel has its colour, others get theirs by order.

        The lines of libraries are dashed. Raises PageError.
        """
        there = (c for c in found.columns if (row, c) in found.values)
        values = {c: found.values[row, c] for c in there}
        if series != "kernel":
            n = found.rows.index(row)
            marker = list(MARKERS.values())[n]
            return Line(f"{series} {row}", f"series-{n + 1}", marker, values)
        colour, marker = self.of(row, "kernels")
        classes = f"series-{colour}" + " library" * (row in found.libraries)
        return Line(short(row), classes, MARKERS[marker], values)


def short(name: str) -> str:
    """A kernel's name as a picture has room for: a file without folder and suffix."""
    return name.rpartition("/")[2].removesuffix(".py")


def parse(body: str, allowed: set[str], *required: str) -> dict[str, Any]:
    """The options in a fence's YAML body. Raises PageError or yaml.YAMLError."""
    options = sources.settings(body)
    if not isinstance(options, dict):
        raise PageError(f"its body is a YAML mapping with {required[0]}")
    for key, value in options.items():
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise PageError(f"there is no option {key!r}; the options are: {known}")
        kind = KINDS.get(key, str)
        if not (value and isinstance(value, kind)):
            raise PageError(f"the option {key!r} is a {kind.__name__}, not {value!r}")
    for key in required:
        if key not in options:
            raise PageError(f"it needs the option {key!r}")
    return options


def grid(
    evidence: Evidence, options: dict[str, Any], row: str, column: str, value: str
) -> Grid:
    """What the record has for the options. A value may be a path into a measurement.

    Measurements lie in the record's list `measurements`, or in the one named `part`.
    Raises PageError, or NotYet where that is nothing so far.
    """
    where, part = options.get("where") or {}, options.get("part", figures.LIST)
    only = [str(each) for each in options.get("only") or ()]
    keys = (row, column, value.partition("/")[0])
    each = str(options.get("each", ""))
    with figures.record(evidence, options["record"], part) as benchmark:
        found = figures.select(evidence, benchmark, part, where, *keys, each=each)
        if row == "kernel":
            only = [e for e in only if figures.known_kernel(evidence, found, e)]
    rows = list(dict.fromkeys(str(item[row]) for item in found))
    rows = [each for each in only or rows if each in rows]
    found = [item for item in found if str(item[row]) in rows]
    values: dict[tuple[str, Any], float] = {}
    for item in found:
        key = (str(item[row]), item[column])
        if key in values:
            several = f"several measurements for {row}={key[0]}, {column}={key[1]}"
            raise PageError(f"{several}: say more in where")
        values[key] = figures.pointer(item, f"/{value}")
    if not values:
        raise NotYet
    columns = sorted({column for _, column in values})
    source = figures.source(evidence, benchmark, part, found)
    ours = {str(item[row]) for item in found if "of" in item}
    libraries = {row for row in rows if row not in ours and not row.endswith(".py")}
    return Grid(rows, columns, values, source, libraries)


def table(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```measurements. Raises PageError, or NotYet, as `grid` does.

    One quantity, `value`, for each value of a key, `columns`; or several quantities,
    `values: {heading: key | format}`. A unit that the title has is in no cell.
    """
    several = "values" in parse(body, TABLE, "record", "rows")
    allowed = SEVERAL if several else TABLE - {"values"}
    needed = () if several else ("columns", "value")
    options = parse(body, allowed, "record", "rows", *needed)
    rows, title = options["rows"], str(options.get("title", ""))
    if several:
        found, forms = _quantities(evidence, options)
        corner = rows
    else:
        form = unit(options["value"], str(options.get("format", "")))
        found = grid(evidence, options, rows, options["columns"], options["value"])
        forms = dict.fromkeys(found.columns, form)
        corner = f"{rows}, by {style.axes.get(options['columns'], options['columns'])}"
    shown = _table(found, corner, forms, title, found.source.caption(title, base))
    return f'<figure class="measurements">{shown}</figure>'


def _quantities(
    evidence: Evidence, options: dict[str, Any]
) -> tuple[Grid, dict[str, str]]:
    """A column for each of the option values, and the formats of the columns."""
    grids, forms, row = {}, {}, options["rows"]
    for heading, told in options["values"].items():
        key, _, form = (each.strip() for each in str(told).partition("|"))
        forms[str(heading)] = unit(key, form)
        grids[str(heading)] = grid(evidence, options, row, row, key)
    values = {
        (name, heading): value
        for heading, found in grids.items()
        for (name, _), value in found.values.items()
    }
    first = next(iter(grids.values()))
    return replace(first, columns=[*grids], values=values), forms


def plot(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```plot. Raises PageError, or NotYet, as `grid` does."""
    options = parse(body, PLOT, "record", "x", "y", "series", "title")
    form = unit(options["y"], str(options.get("format", "")))
    title, series = options["title"], options["series"]
    found = grid(evidence, options, series, options["x"], options["y"])
    if len(found.rows) > len(MARKERS):
        raise PageError(f"{len(found.rows)} series; at most {len(MARKERS)}: use only")
    lines = [style.line(found, series, row) for row in found.rows]
    if len({line.classes for line in lines}) < len(lines):
        raise PageError("two of its series have one colour in mkdocs.yml")
    shown = Plot(
        drawing.WIDE,
        found.columns,
        style.of(options["x"], "axes"),
        str(options.get("x_scale", "linear")),
        options.get("ticks", ()),
        lines=lines,
        levels=_levels(evidence, options, form),
        y_words=style.of(options["y"], "axes"),
        y_scale=str(options.get("y_scale", "linear")),
        form=form,
    )
    label = f"{title}: {shown.y_words} by {shown.x_words}"
    drawn = "".join(
        layout.svg(label, replace(shown, layout=layout).draw(), role="group")
        for layout in drawing.LAYOUTS
    )
    corner = f"{series}, by {shown.x_words}"
    numbers = _table(found, corner, dict.fromkeys(found.columns, form))
    return figure(title, drawn, numbers, found.source, base)


def figure(
    title: str, shown: str, numbers: str, source: figures.Source, base: str
) -> str:
    """A picture with its title and, folded below it, its numbers and their source."""
    caption = source.caption(title, base)
    return (
        f'<figure class="plot"><figcaption>{caption}</figcaption>{shown}'
        f"<details><summary>Numbers of this plot</summary>{numbers}"
        f"{source.told(base)}</details></figure>"
    )


def heatmap(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```heatmap: the best of `only` as a part of the best of `against`.

    It is a table whose cells are shaded by that part; both values stand in each cell.
    Raises PageError, or NotYet, as `grid` does.
    """
    needed = "rows", "columns", "value", "title", "only", "against"
    options = parse(body, HEAT, "record", *needed)
    rows, columns, value = (options[key] for key in ("rows", "columns", "value"))
    form = unit(value, str(options.get("format", "")))
    ours, source = _best(evidence, options, options["only"])
    theirs, other = _best(evidence, options, options["against"])
    heads = sorted({column for _, column in ours})
    head = "".join(f'<th scope="col">{number(column)}</th>' for column in heads)
    cells = "".join(
        f'<tr><th scope="row">{number(row)}</th>'
        + "".join(_heat(ours, theirs, (row, c), value, form) for c in heads)
        + "</tr>"
        for row in sorted({row for row, _ in ours})
    )
    key = "".join(f'<li class="heat-{n}">{s}</li>' for n, s in enumerate(SHADES))
    caption = (source if source.stale else other).caption(options["title"], base)
    return (
        f'<figure class="heat"><table><caption>{caption}</caption>'
        f'<thead><tr><td></td><th scope="colgroup" colspan="{len(heads)}">'
        f"{escape(style.of(columns, 'axes'))}</th></tr><tr>"
        f'<th scope="col">{escape(style.of(rows, "axes"))}</th>{head}</tr></thead>'
        f"<tbody>{cells}</tbody></table><ul>{key}</ul></figure>"
    )


def _best(
    evidence: Evidence, options: dict[str, Any], kernels: list[str]
) -> tuple[Cells, figures.Source]:
    """For each row and column the measurement with the largest value of a kernel."""
    where, part = options.get("where") or {}, options.get("part", figures.LIST)
    row, column, value = keys = [options[k] for k in ("rows", "columns", "value")]
    with figures.record(evidence, options["record"], part) as benchmark:
        found = figures.select(evidence, benchmark, part, where, *keys, "kernel")
        known = [k for k in kernels if figures.known_kernel(evidence, found, k)]
    theirs = [item for item in found if item["kernel"] in known]
    if not theirs:
        raise NotYet
    theirs.sort(key=lambda item: float(item[value]))
    cells = {(item[row], item[column]): item for item in theirs}
    return cells, figures.source(evidence, benchmark, part, [*cells.values()])


def _heat(
    ours: Cells, theirs: Cells, key: tuple[Any, Any], value: str, form: str
) -> str:
    if key not in ours or key not in theirs:
        return "<td>not measured</td>"
    both = ours[key], theirs[key]
    part = both[0][value] / both[1][value]
    shade = min(max(int(10 * part) - 5, 0), len(SHADES) - 1)
    shown = "".join(
        f"<span>{breakable(short(item['kernel']))} "
        f"{render(item[value], form).partition(chr(160))[0]}</span>"
        for item in both
    )
    percent = render(part, "percent")
    return f'<td class="heat-{shade}"><strong>{percent}</strong>{shown}</td>'


def _table(
    found: Grid,
    corner: str,
    forms: Mapping[Any, str],
    title: str = "",
    caption: str = "",
) -> str:
    caption = f"<caption>{caption}</caption>" if caption else ""
    rows = (
        (
            f"<code>{breakable(row)}</code>",
            figures.cells(
                escape(beside(title, found.values[row, c], forms[c]))
                if (row, c) in found.values
                else "not measured"
                for c in found.columns
            ),
        )
        for row in found.rows
    )
    return figures.facts([escape(corner), *map(number, found.columns)], rows, caption)


def _levels(evidence: Evidence, options: dict[str, Any], form: str) -> dict[str, float]:
    """The option levels, {copy: 1, half: 1/2}; a value "/..." is a JSON pointer.

    What is no share of 1 would be a figure of no source. Raises PageError.
    """
    levels = {}
    for name, value in options.get("levels", {}).items():
        recorded = str(value).startswith("/")
        if recorded:
            part = options.get("part", figures.LIST)
            unit(value, form)
            with figures.record(evidence, options["record"], part) as benchmark:
                value = figures.pointer(benchmark.data, value)
        levels[str(name)] = float(Fraction(value))
        if not recorded and not 0 <= levels[str(name)] <= 1:
            raise PageError(f"the level {name}: {value} is neither a share nor a path")
    return levels
