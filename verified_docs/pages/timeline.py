"""When something ran: a bar for each time, by a clock inside the kernels.

A measurement of the list `timeline` has `programs`, those of one multiprocessor, or
`groups`, warp groups of one multiprocessor with the spans of what they did.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import fmean
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import drawing, figures
from verified_docs.pages.drawing import CHARACTER, Frame, Layout, text
from verified_docs.pages.figures import number, significant
from verified_docs.pages.measurements import QUERY, found
from verified_docs.pages.plots import figure
from verified_docs.pages.sources import options
from verified_docs.pages.style import Style

TIMELINE = QUERY | {"title": str, "part": "timeline"}
# Heights: a row, the words above a track, the name of a lane, the axis.
ROW, HEAD, NAME, BELOW = 22, 46, 24, 56
# The room for names of rows, what the axis is, and the columns of the table.
PROGRAMS = (
    1,
    "microseconds after the first program began",
    ("launch", "head", "block", "begin, µs", "end, µs"),
)
GROUPS = (
    7 * CHARACTER,
    "cycles of the multiprocessor",
    ("kernel", "warp group", "what", "tile", "begin, cycles", "end, cycles"),
)


@dataclass(frozen=True)
class Bar:
    """What ran, in a row of its lane. Its facts are a row of the table."""

    row: int
    begin: float
    end: float
    classes: str
    text: str
    facts: Sequence[Any]


@dataclass(frozen=True)
class Lane:
    """Rows of bars; the lane may have a name, and so may each row."""

    name: str
    rows: Sequence[str]
    bars: list[Bar]


@dataclass(frozen=True)
class Track:
    """One measurement, and in words what a reader should see in it."""

    name: str
    words: str
    lanes: list[Lane]

    @property
    def end(self) -> float:
        """When its last bar ends."""
        return max(bar.end for lane in self.lanes for bar in lane.bars)

    @property
    def described(self) -> str:
        """The words, and for how much of the time each row of a named lane has bars."""
        told = [f"{self.name}: {self.words}"]
        for lane in self.lanes:
            if lane.name:
                times = [0.0] * len(lane.rows)
                for bar in lane.bars:
                    times[bar.row] += bar.end - bar.begin
                shares = (
                    f"{row} {figures.render(time / self.end, 'percent')}"
                    for row, time in zip(lane.rows, times, strict=True)
                )
                told.append(f"{lane.name}: {', '.join(shares)}")
        return ". ".join(told)


def render(evidence: Evidence, style: Style, body: str, base: str = "") -> str:
    """The fence ```timeline: the list `timeline` of a record.

    Raises PageError, or NotYet where there is none so far.
    """
    told = options(body, TIMELINE)
    items, source = found(evidence, told, "kernel")
    programs = "programs" in items[0]
    tracks = [_programs(it) if programs else _groups(it, style) for it in items]
    label = ". ".join([told["title"], *(track.described for track in tracks)])
    left, axis, head = PROGRAMS if programs else GROUPS
    # Half of the last number stands beyond the end of the axis.
    pictures = "".join(
        _draw(tracks, replace(each, left=left, right=each.width - 8), axis, label)
        for each in drawing.LAYOUTS
    )
    return figure(told["title"], pictures, _numbers(tracks, head), source, base)


def _programs(item: dict[str, Any]) -> Track:
    """Each program in the first row that is free when it begins."""
    free: list[float] = []
    bars: list[Bar] = []
    for program in sorted(item["programs"], key=lambda each: each["begin_seconds"]):
        begin, end = (1e6 * program[f"{key}_seconds"] for key in ("begin", "end"))
        row = next((n for n, at in enumerate(free) if at <= begin), len(free))
        free[row : row + 1] = [end]
        facts = program["head"], program["block"], f"{begin:.1f}", f"{end:.1f}"
        bars.append(Bar(row, begin, end, "series-1", "", facts))
    each = fmean(bar.end - bar.begin for bar in bars)
    words = (
        f"{len(free)} at a time: {len(bars)} programs in "
        f"{significant(max(free))}\u00a0µs, each took {significant(each)}\u00a0µs"
    )
    return Track(item["kernel"], words, [Lane("", [""] * len(free), bars)])


def _groups(item: dict[str, Any], style: Style) -> Track:
    """Each warp group with a row for each thing that it does, in the style's order."""
    names = [group["name"] for group in item["groups"]]
    lanes = []
    for n, group in enumerate(item["groups"], start=1):
        alike = names.count(group["name"]) > 1
        lane = f"{group['name']} {n}" if alike else group["name"]
        done = {span["what"] for span in group["spans"]}
        rows = [what for what in style.spans if what in done]
        bars = []
        for span in group["spans"]:
            begin, end, tile = span["begin_cycles"], span["end_cycles"], span["tile"]
            words, classes = style.of(span["what"], "spans")
            facts = lane, words, tile, number(begin), number(end)
            row = rows.index(span["what"])
            bars.append(Bar(row, begin, end, classes, str(tile), facts))
        lanes.append(Lane(lane, [style.spans[what][0] for what in rows], bars))
    per_tile = number(round(item["cycles_per_tile"]))
    words = f"{number(item['cycles'])} cycles, {per_tile} a tile"
    return Track(item["kernel"], words, lanes)


def _draw(tracks: list[Track], layout: Layout, axis: str, label: str) -> str:
    last = math.ceil(max(track.end for track in tracks))
    # The last number is the end of the last bar: what would touch it is left out.
    ticks = drawing.round_ticks(last)
    columns = [*(int(tick) for tick in ticks if tick < 0.85 * last), last]
    frame = Frame(layout, columns, axis)
    drawn, y = [], 0
    for track in tracks:
        drawn += [
            text(0, y + 20, track.name, "plot-words"),
            text(0, y + 38, track.words),
        ]
        y += HEAD
        for lane in track.lanes:
            if lane.name:
                drawn.append(text(0, y + 18, lane.name, "plot-lane"))
                y += NAME
            for n, name in enumerate(lane.rows):
                if name:
                    drawn.append(text(0, y + ROW * n + 15, name))
            drawn += [_bar(bar, frame, y + ROW * bar.row) for bar in lane.bars]
            y += ROW * len(lane.rows)
    layout = replace(layout, bottom=y + 8, height=y + 8 + BELOW)
    drawn = [*replace(frame, layout=layout).x_axis(), *drawn]
    return layout.svg(label, "".join(drawn), role="img")


def _bar(bar: Bar, frame: Frame, y: int) -> str:
    """A bar, with its text where there is room."""
    x, end = frame.x(bar.begin), frame.x(bar.end)
    drawn = (
        f'<rect class="plot-bar {bar.classes}" x="{x:.1f}" y="{y}" '
        f'width="{max(end - x - 1, 1):.1f}" height="{ROW - 3}"/>'
    )
    if end - x > CHARACTER * len(bar.text) + 4:
        drawn += text((x + end - 1) / 2, y + 15, bar.text, anchor="middle")
    return drawn


def _numbers(tracks: list[Track], head: Sequence[str]) -> str:
    rows = (
        (escape(track.name), figures.cells(escape(str(fact)) for fact in bar.facts))
        for track in tracks
        for lane in track.lanes
        for bar in lane.bars
    )
    return figures.facts(head, rows)
