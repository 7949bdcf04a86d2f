"""When the programs of one multiprocessor ran: a bar for each, from a clock inside."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures
from verified_docs.pages.drawing import (
    NARROW,
    SCALES,
    WIDE,
    Frame,
    Layout,
    round_ticks,
    x_axis,
)
from verified_docs.pages.figures import NotYet, significant
from verified_docs.pages.plots import absent, figure, parse

OPTIONS = {"record", "where", "title"}
WORDS = "microseconds after the first program began"
BAR, HEAD, BELOW = 22, 46, 56  # heights: a bar, the words above bars, the axis


@dataclass(frozen=True)
class Bar:
    """A program: its place on the multiprocessor, and its times in microseconds."""

    lane: int
    begin: float
    end: float
    program: dict[str, Any]


@dataclass(frozen=True)
class Track:
    """What one multiprocessor did in one launch."""

    name: str
    bars: list[Bar]

    @property
    def lanes(self) -> int:
        """How many programs it had at a time."""
        return 1 + max(bar.lane for bar in self.bars)

    @property
    def end(self) -> float:
        """When its last program ended."""
        return max(bar.end for bar in self.bars)

    @property
    def words(self) -> str:
        """What a reader should see in it."""
        each = sum(bar.end - bar.begin for bar in self.bars) / len(self.bars)
        return (
            f"{self.lanes} at a time: {len(self.bars)} programs in "
            f"{significant(self.end)}\u00a0µs, each took {significant(each)}\u00a0µs"
        )


def render(evidence: Evidence, body: str) -> str:
    """The fence ```timeline: the list `timeline` of a record. Raises FigureError."""
    options = parse(body, OPTIONS, "record", "title")
    name, title = options["record"], options["title"]
    where = {**(options.get("where") or {}), "part": "timeline"}
    try:
        with figures.maybe_newer(evidence, name):
            found = figures.select(evidence, name, where, "kernel", "programs")
    except NotYet:
        return absent(title)
    tracks = []
    for item in found:
        stale = figures.stale(evidence, name, item["of"])
        shown = f"{item['kernel']} (stale)" if stale else str(item["kernel"])
        tracks.append(Track(shown, list(_bars(item["programs"]))))
    label = ". ".join([title, *(f"{track.name}: {track.words}" for track in tracks)])
    # Half of the last number stands beyond the end of the axis.
    wide = replace(WIDE, left=1, right=WIDE.width - 8)
    narrow = replace(NARROW, left=1, right=NARROW.width - 8)
    pictures = (_draw(tracks, layout, label) for layout in (wide, narrow))
    return figure(title, "".join(pictures), _numbers(tracks))


def _bars(programs: Sequence[dict[str, Any]]) -> Iterator[Bar]:
    """Each program in the first lane that is free when it begins."""
    free: list[float] = []
    for program in sorted(programs, key=lambda program: program["begin_seconds"]):
        begin, end = (1e6 * program[f"{key}_seconds"] for key in ("begin", "end"))
        lane = next((n for n, at in enumerate(free) if at <= begin), len(free))
        free[lane : lane + 1] = [end]
        yield Bar(lane, begin, end, program)


def _draw(tracks: list[Track], layout: Layout, label: str) -> str:
    heights = [HEAD + BAR * track.lanes for track in tracks]
    bottom = sum(heights) + 8
    layout = replace(layout, bottom=bottom, height=bottom + BELOW)
    last = math.ceil(max(track.end for track in tracks))
    # The last number is the end of the last bar: what would touch it is left out.
    columns = [*(int(tick) for tick in round_ticks(last) if tick < 0.85 * last), last]
    frame = Frame(layout, SCALES["linear"], SCALES["linear"], columns, [])
    drawn = list(x_axis(frame, WORDS))
    for n, track in enumerate(tracks):
        top = sum(heights[:n]) + HEAD
        drawn.append(
            f'<text class="plot-words" x="0" y="{top - 26}">{escape(track.name)}</text>'
            f'<text x="0" y="{top - 8}">{escape(track.words)}</text>'
        )
        for bar in track.bars:
            x, end = frame.x(bar.begin), frame.x(bar.end)
            drawn.append(
                f'<rect class="plot-bar" x="{x:.1f}" y="{top + BAR * bar.lane}" '
                f'width="{max(end - x - 1, 1):.1f}" height="{BAR - 3}"/>'
            )
    return layout.svg(label, "".join(drawn), role="img")


def _numbers(tracks: list[Track]) -> str:
    head = "".join(
        f'<th scope="col">{words}</th>'
        for words in ("launch", "head", "block", "begin, µs", "end, µs")
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(track.name)}</th>'
        f"<td>{bar.program['head']}</td><td>{bar.program['block']}</td>"
        f"<td>{bar.begin:.1f}</td><td>{bar.end:.1f}</td></tr>"
        for track in tracks
        for bar in track.bars
    )
    return (
        f'<div class="scroll"><table class="facts"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
