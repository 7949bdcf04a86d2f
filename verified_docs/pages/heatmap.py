"""Heat maps: who is ahead, shape by shape, and by how much."""

from html import escape
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages.figures import NotYet, breakable, number, render, unit
from verified_docs.pages.measurements import QUERY, found
from verified_docs.pages.sources import options
from verified_docs.pages.style import Style, short

HEAT = QUERY | {"title": str, "rows": str, "columns": str, "value": str, "format": ""}
HEAT |= {"only": list, "against": list}
SHADES = ("under 60\u00a0%", "60 to 70", "70 to 80", "80 to 90", "90 to 100", "faster")
Best = dict[tuple[Any, Any], dict[str, Any]]  # a measurement by row and column


def heatmap(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```heatmap: the best of `only` as a part of the best of `against`.

    It is a table whose cells are shaded by that part; both values stand in each cell.
    Raises PageError, or NotYet, as `found` does.
    """
    told = options(body, HEAT)
    keys = rows, columns, value = told["rows"], told["columns"], told["value"]
    form = unit(value, told["format"])
    both = told | {"only": told["only"] + told["against"]}
    items, source = found(evidence, both, *keys, "kernel")
    items.sort(key=lambda item: float(item[value]))  # so that the best is the last
    ours, theirs = (
        {(item[rows], item[columns]): item for item in items if item["kernel"] in group}
        for group in (told["only"], told["against"])
    )
    if not (ours and theirs):
        raise NotYet
    heads = sorted({column for _, column in ours})
    head = "".join(f'<th scope="col">{escape(number(each))}</th>' for each in heads)
    cells = "".join(
        f'<tr><th scope="row">{escape(number(row))}</th>'
        + "".join(_cell(ours, theirs, (row, c), value, form) for c in heads)
        + "</tr>"
        for row in sorted({row for row, _ in ours})
    )
    key = "".join(f'<li class="heat-{n}">{s}</li>' for n, s in enumerate(SHADES))
    caption = source.caption(told["title"], base)
    return (
        f'<figure class="heat"><table><caption>{caption}</caption>'
        f'<thead><tr><td></td><th scope="colgroup" colspan="{len(heads)}">'
        f"{escape(style.of(columns, 'axes'))}</th></tr><tr>"
        f'<th scope="col">{escape(style.of(rows, "axes"))}</th>{head}</tr></thead>'
        f"<tbody>{cells}</tbody></table><ul>{key}</ul></figure>"
    )


def _cell(
    ours: Best, theirs: Best, shape: tuple[Any, Any], value: str, form: str
) -> str:
    """A cell with the two best of a shape."""
    if shape not in ours or shape not in theirs:
        return "<td>not measured</td>"
    both = ours[shape], theirs[shape]
    part = both[0][value] / both[1][value]
    shade = min(max(int(10 * part) - 5, 0), len(SHADES) - 1)
    shown = "".join(
        f"<span>{breakable(short(item['kernel']))} "
        f"{render(item[value], form).partition(chr(160))[0]}</span>"
        for item in both
    )
    percent = render(part, "percent")
    return f'<td class="heat-{shade}"><strong>{percent}</strong>{shown}</td>'
