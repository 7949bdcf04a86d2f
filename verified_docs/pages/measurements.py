"""What a fence shows of a benchmark's record, and how it is a table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import NotYet, beside, breakable, number, unit
from verified_docs.pages.sources import options, settings
from verified_docs.pages.style import Style

QUERY = {"record": str, "part": figures.LIST, "where": {}, "only": [], "each": ""}
TITLED = QUERY | {"title": "", "rows": "kernel"}
TABLE = TITLED | {"columns": str, "value": str, "format": ""}
SEVERAL = TITLED | {"values": dict}


@dataclass(frozen=True)
class Grid:
    """Measurements by row and column."""

    columns: dict[Any, str]  # the format of each
    rows: dict[str, dict[Any, float]]
    source: figures.Source
    libraries: set[str]  # rows that are no kernels of ours


def found(
    evidence: Evidence, told: Mapping[str, Any], *keys: str
) -> tuple[list[dict[str, Any]], figures.Source]:
    """The measurements that a fence asks for, all with these keys, and their source.

    With `only`, they are those of these kernels, in this order. Raises PageError, or
    NotYet where there is none so far.
    """
    part, where, each = told["part"], told["where"], told["each"]
    with figures.record(evidence, told["record"], part) as benchmark:
        items = figures.select(evidence, benchmark, part, where, *keys, each=each)
        only = [k for k in told["only"] if figures.known_kernel(evidence, items, k)]
    if told["only"]:
        items = [item for kernel in only for item in items if item["kernel"] == kernel]
    if not items:
        raise NotYet
    return items, figures.source(evidence, benchmark, part, items)


def grid(
    evidence: Evidence,
    told: Mapping[str, Any],
    row: str,
    column: str,
    value: str,
    form: str,
) -> Grid:
    """A value, or a path to it, of each measurement, by two of its other keys.

    Raises PageError, or NotYet, as `found` does.
    """
    form = unit(value, form)
    items, source = found(evidence, told, row, column, value.partition("/")[0])
    rows: dict[str, dict[Any, float]] = {}
    for item in items:
        values = rows.setdefault(str(item[row]), {})
        if item[column] in values:
            several = f"several measurements for {row}={item[row]}"
            raise PageError(f"{several}, {column}={item[column]}: say more in where")
        values[item[column]] = figures.pointer(item, f"/{value}")
    columns = sorted({column for values in rows.values() for column in values})
    ours = {str(item[row]) for item in items if "of" in item}
    libraries = {row for row in rows if row not in ours and not row.endswith(".py")}
    return Grid(dict.fromkeys(columns, form), rows, source, libraries)


def table(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```measurements. Raises PageError, or NotYet, as `found` does.

    One quantity, `value`, for each value of a key, `columns`; or several quantities,
    `values: {heading: key | format}`. A unit that the title has is in no cell.
    """
    several = "values" in (settings(body) or ())
    told = options(body, SEVERAL if several else TABLE)
    corner, title = told["rows"], told["title"]
    if several:
        shown = _quantities(evidence, told)
    else:
        keys = (told[key] for key in ("rows", "columns", "value", "format"))
        shown = grid(evidence, told, *keys)
        corner += f", by {style.axes.get(told['columns'], told['columns'])}"
    caption = f"<caption>{shown.source.caption(title, base)}</caption>"
    drawn = cells(shown, corner, title, caption)
    return f'<figure class="measurements">{drawn}</figure>'


def _quantities(evidence: Evidence, told: Mapping[str, Any]) -> Grid:
    """A column for each of the option values: the rows by themselves."""
    columns: dict[Any, str] = {}
    rows: dict[str, dict[Any, float]] = {}
    for heading, text in told["values"].items():
        key, _, form = (each.strip() for each in str(text).partition("|"))
        one = grid(evidence, told, told["rows"], told["rows"], key, form)
        for name, values in one.rows.items():
            for itself, value in values.items():
                columns[heading] = one.columns[itself]
                rows.setdefault(name, {})[heading] = value
    return replace(one, columns=columns, rows=rows)


def cells(shown: Grid, corner: str, title: str = "", caption: str = "") -> str:
    """A grid as a table, each column in its format."""
    rows = (
        (
            f"<code>{breakable(name)}</code>",
            figures.cells(
                escape(beside(title, values[column], form))
                if column in values
                else "not measured"
                for column, form in shown.columns.items()
            ),
        )
        for name, values in shown.rows.items()
    )
    heads = [escape(each) for each in (corner, *map(number, shown.columns))]
    return figures.facts(heads, rows, caption)
