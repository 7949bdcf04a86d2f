"""Line plots, drawn at build time, each with its numbers folded below it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import drawing, figures
from verified_docs.pages.drawing import MARKERS, Line, Plot
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import unit
from verified_docs.pages.measurements import QUERY, Grid, cells, grid
from verified_docs.pages.sources import options
from verified_docs.pages.style import Style, short

PLOT = QUERY | {"title": str, "x": str, "y": str, "series": "kernel", "levels": {}}
PLOT |= {"format": "", "x_scale": "log2", "y_scale": "linear", "ticks": []}


def plot(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```plot. Raises PageError, or NotYet where nothing is measured."""
    told = options(body, PLOT)
    form = unit(told["y"], told["format"])
    found = grid(evidence, told, told["series"], told["x"], told["y"], form)
    x_words, y_words = (style.of(told[key], "axes") for key in ("x", "y"))
    shown = Plot(
        drawing.WIDE,
        [*found.columns],
        x_words,
        told["x_scale"],
        told["ticks"],
        lines=_lines(style, found, told["series"]),
        levels=_levels(evidence, told, form),
        y_words=y_words,
        y_scale=told["y_scale"],
        form=form,
    )
    label = f"{told['title']}: {y_words} by {x_words}"
    drawn = "".join(
        layout.svg(label, replace(shown, layout=layout).draw(), role="group")
        for layout in drawing.LAYOUTS
    )
    numbers = cells(found, f"{told['series']}, by {x_words}")
    return figure(told["title"], drawn, numbers, found.source, base)


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


def _lines(style: Style, found: Grid, series: str) -> list[Line]:
    """A line for each row: a kernel has its colour, others get theirs by order.

    The lines of libraries are dashed. Raises PageError.
    """
    if len(found.rows) > len(MARKERS):
        raise PageError(f"{len(found.rows)} series; at most {len(MARKERS)}: use only")
    lines = []
    for n, (row, values) in enumerate(found.rows.items()):
        name, colour, marker, more = f"{series} {row}", n + 1, [*MARKERS][n], ""
        if series == "kernel":
            name, (colour, marker) = short(row), style.of(row, "kernels")
            more = " library" * (row in found.libraries)
        ordered = {c: values[c] for c in found.columns if c in values}
        classes = f"series-{colour}{more}"
        lines.append(Line(name, classes, MARKERS[marker], ordered))
    if len({line.classes for line in lines}) < len(lines):
        raise PageError("two of its series have one colour in mkdocs.yml")
    return lines


def _levels(evidence: Evidence, told: Mapping[str, Any], form: str) -> dict[str, float]:
    """The option levels, {copy: 1, half: 1/2}; a value "/..." is a JSON pointer.

    What is no share of 1 would be a figure of no source. Raises PageError.
    """
    levels = {}
    for name, value in told["levels"].items():
        recorded = str(value).startswith("/")
        if recorded:
            unit(value, form)
            with figures.record(evidence, told["record"], told["part"]) as benchmark:
                value = figures.pointer(benchmark.data, value)
        levels[str(name)] = float(Fraction(value))
        if not recorded and not 0 <= levels[str(name)] <= 1:
            raise PageError(f"the level {name}: {value} is neither a share nor a path")
    return levels
