"""The tile maps of the pages, drawn from traces of the published kernels.

`TRITON_INTERPRET=1 python -m tests.snippets.attention.tile_maps` draws them again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from snippets.attention import flash2_causal, flash2_window
from tests.snippets.attention.tiles import MASKED, SKIPPED, WHOLE, Case, trace

FOLDER = Path(__file__).parents[3] / "docs/assets/diagrams/attention"
NAMES = {WHOLE: "whole", MASKED: "masked", SKIPPED: "skipped"}
# What the first map of a page says of each kind, beside it.
MEANS = {SKIPPED: "never loaded", MASKED: "on the diagonal", WHOLE: "without a mask"}
AXES = "queries \N{DOWNWARDS ARROW}, keys \N{RIGHTWARDS ARROW}"
WIDTH, LEFT, TOP, SCALE = 480, (4, 264), 84.0, 1.375
HATCH = (
    '  <defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<path class="t-s stroke" stroke-opacity="0.8" d="M-1,1L1,-1M0,7L7,0M6,8L8,6"/>'
    "</pattern></defs>"
)


@dataclass(frozen=True)
class Panel:
    """One map: its title, and the call that it shows."""

    title: str
    attention: Callable
    case: Case


CAUSAL = flash2_causal.attention
DIAGRAMS = {
    "causal-tiles.svg": (
        "Tiles that a causal launch skips, computes whole, and masks",
        (Panel("512 tokens, tiles of 64 by 64", CAUSAL, Case(512, 512, 64, 64)),),
    ),
    "causal-lengths.svg": (
        "Tiles of a causal launch with more keys than queries, and with fewer",
        (
            Panel("64 queries, 128 keys", CAUSAL, Case(64, 128, 32, 16)),
            Panel("128 queries, 64 keys", CAUSAL, Case(128, 64, 32, 16)),
        ),
    ),
    "causal-shapes.svg": (
        "Tiles of a causal launch that are taller than wide, and wider than tall",
        (
            Panel("128 tokens, tiles 32 by 16", CAUSAL, Case(128, 128, 32, 16)),
            Panel("the same, tiles 16 by 32", CAUSAL, Case(128, 128, 16, 32)),
        ),
    ),
    "window-tiles.svg": (
        "Tiles that a launch with a sliding window visits",
        tuple(
            Panel(
                f"window of {window} keys",
                flash2_window.attention,
                Case(128, 128, 16, 16, {"causal": True, "window": window}),
            )
            for window in (56, 20)
        ),
    ),
}


def text(x: float, y: float, words: str, size: int = 14, style: str = "") -> str:
    """A line of text in the colour of the page's."""
    return (
        f'  <text class="ink" x="{x:g}" y="{y:g}" font-size="{size}"{style}>'
        f"{escape(words)}</text>"
    )


def tile(x: float, y: float, width: float, height: float, letter: str) -> Iterator[str]:
    """A box: filled, hatched, or empty with a dashed outline."""
    box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    if letter == WHOLE:
        yield f'  <rect class="t-s" {box} fill-opacity="0.4"/>'
    if letter == MASKED:
        yield f'  <rect {box} fill="url(#hatch)"/>'
    style = ""
    if letter == SKIPPED:
        # Half a dash at each end of a side: those of neighbours fall on each other.
        side = min(width, height)
        dash = side / round(side / 6) / 2
        style = f' stroke-dasharray="{dash / 2:g} {dash:g} {dash / 2:g} 0"'
        style += ' stroke-opacity="0.35"'
    yield f'  <rect class="line" {box}{style}/>'


def edge(case: Case, diagonal: int, x: float, y: float, scale: float = SCALE) -> str:
    """The line along which the scores have column = row + diagonal."""
    first, last = max(0, -diagonal), min(case.seq_q, case.seq_k - diagonal)
    ends = [
        f"{x + (row + diagonal) * scale:g},{y + row * scale:g}" for row in (first, last)
    ]
    return f'  <path class="accent" d="M{"L".join(ends)}"/>'


def panel(shown: Panel, x: float, y: float, side: float = 0) -> tuple[list[str], str]:
    """The parts of one map whose scores begin at x, y; and what it says in words.

    A map with a `side` is large, and has its counts beside it instead of above.
    """
    case = shown.case
    rows = trace(shown.attention, case)
    found = "".join(rows)
    counts = ", ".join(f"{found.count(x)} {NAMES[x]}" for x in NAMES)
    scale = side / case.seq_k or SCALE
    if side:
        parts = [text(x, y - 12, shown.title), text(x + side + 22, y - 12, AXES)]
        for at, (letter, means) in enumerate(MEANS.items()):
            left, top = x + side + 22, y + side * (0.1 + 0.34 * at)
            parts += tile(left, top, 22, 22, letter)
            many = f"{found.count(letter)} {NAMES[letter]}"
            parts.append(text(left + 32, top + 18, many, 20, ' font-weight="700"'))
            parts.append(text(left + 32, top + 40, means, 16))
    else:
        parts = [text(x, y - 26, shown.title), text(x, y - 8, counts, 13)]
    width, height = case.block_n * scale, case.block_m * scale
    for row, letters in enumerate(rows):
        for col, letter in enumerate(letters):
            parts += tile(x + col * width, y + row * height, width, height, letter)
    diagonal = case.seq_k - case.seq_q
    parts.append(edge(case, diagonal, x, y, scale))
    if "window" in case.options:
        parts.append(edge(case, diagonal - case.options["window"], x, y, scale))
    words = "; ".join(
        ", ".join(f"{len(list(run))} {NAMES[x]}" for x, run in groupby(letters))
        for letters in rows
    )
    return parts, f"{shown.title}: {counts}; by blocks of queries: {words}."


def svg(title: str, parts: list[str], sentences: list[str], height: float) -> str:
    """The maps below a legend, and what they say in words."""
    legend = []
    for at, (letter, name) in enumerate(NAMES.items()):
        legend += tile(4 + 110 * at, 6, 22, 22, letter)
        legend.append(text(34 + 110 * at, 22, name))
    legend.append(text(348, 22, AXES))
    return framed(title, legend + parts, sentences, height)


def framed(title: str, parts: list[str], sentences: list[str], height: float) -> str:
    """The whole file: what is drawn, and what it says in words."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}">\n'
        f"  <title>{escape(title)}</title>\n"
        f"  <desc>Queries from top to bottom, keys from left to right. "
        f"{escape(' '.join(sentences))}</desc>\n"
        + "\n".join([HATCH, *parts])
        + "\n</svg>\n"
    )


def draw(title: str, panels: tuple[Panel, ...]) -> str:
    """The SVG of one large map, or of two beside each other."""
    if len(panels) == 1:
        parts, sentence = panel(panels[0], 4, 30, side=272)
        return framed(title, parts, [sentence], 308)
    drawn = [panel(shown, x, TOP) for x, shown in zip(LEFT, panels, strict=True)]
    parts = [part for parts, _ in drawn for part in parts]
    height = max(shown.case.seq_q for shown in panels) * SCALE
    return svg(title, parts, [words for _, words in drawn], TOP + height + 6)


if __name__ == "__main__":
    for name, diagram in DIAGRAMS.items():
        (FOLDER / name).write_text(draw(*diagram), encoding="utf-8")
