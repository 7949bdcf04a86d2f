"""The tile map of the causal backward pass, drawn from traces of its two kernels.

`TRITON_INTERPRET=1 python -m tests.snippets.backward.tile_maps` draws it again.
"""

from html import escape
from itertools import groupby
from pathlib import Path

from snippets.backward import causal_backward
from tests.snippets.attention.tile_maps import (
    HATCH,
    LEFT,
    NAMES,
    SCALE,
    WIDTH,
    edge,
    text,
    tile,
)
from tests.snippets.attention.tiles import SKIPPED, Case
from tests.snippets.backward.tiles import trace

FILE = Path(__file__).parents[3] / "docs/assets/diagrams/backward/causal-tiles.svg"
TITLE = "Tiles that the two kernels of a causal backward pass visit"
# A row of maps for each: what it is, the call, and the program whose walk is drawn.
ROWS = (
    ("128 queries and keys", Case(128, 128, 16, 32), {"dq": 5, "dk": 1}),
    ("64 queries, 128 keys", Case(64, 128, 16, 32), {"dq": 1, "dk": 2}),
)
KERNELS = {"dq": "dQ: row by row", "dk": "dK, dV: column by column"}


def arrow(tiles: list[tuple[float, float]], down: bool) -> list[str]:
    """From the middle of the first tile of a walk to that of the last."""
    (x, y), (end_x, end_y) = tiles[0], tiles[-1]
    tip = [(0, 5), (-3.5, -3), (3.5, -3)] if down else [(5, 0), (-3, -3.5), (-3, 3.5)]
    corners = " ".join(f"{end_x + dx:g},{end_y + dy:g}" for dx, dy in tip)
    return [
        f'  <circle class="ink" cx="{x:g}" cy="{y:g}" r="3"/>',
        f'  <path class="line" stroke-width="2" d="M{x:g},{y:g}L{end_x:g},{end_y:g}"/>',
        f'  <polygon class="ink" points="{corners}"/>',
    ]


def panel(
    name: str, said: str, case: Case, walker: int, x: float, y: float
) -> tuple[list[str], str]:
    """One map whose scores begin at x, y; and what it says in words."""
    rows = trace(causal_backward, case)[name]
    found = "".join(rows)
    counts = ", ".join(f"{found.count(each)} {NAMES[each]}" for each in NAMES)
    parts = [text(x, y - 26, KERNELS[name]), text(x, y - 8, said, 13)]
    width, height = case.block_n * SCALE, case.block_m * SCALE
    walk = []
    for row, letters in enumerate(rows):
        for col, letter in enumerate(letters):
            parts += tile(x + col * width, y + row * height, width, height, letter)
            if (row if name == "dq" else col) == walker and letter != SKIPPED:
                walk.append((x + (col + 0.5) * width, y + (row + 0.5) * height))
    parts.append(edge(case, case.seq_k - case.seq_q, x, y))
    parts += arrow(walk, down=name == "dk")
    lines = rows if name == "dq" else ["".join(col) for col in zip(*rows, strict=True)]
    words = "; ".join(
        ", ".join(f"{len(list(run))} {NAMES[each]}" for each, run in groupby(letters))
        for letters in lines
    )
    by = "queries" if name == "dq" else "keys"
    return parts, f"{KERNELS[name]}, {said}: {counts}; by blocks of {by}: {words}."


def draw() -> str:
    """The SVG: a row of maps for each call, the two kernels beside each other."""
    parts, sentences, y = [HATCH], [], 84.0
    for at, (letter, name) in enumerate(NAMES.items()):
        parts += tile(4 + 150 * at, 6, 22, 22, letter)
        parts.append(text(34 + 150 * at, 22, name))
    for said, case, walkers in ROWS:
        for x, name in zip(LEFT, KERNELS, strict=True):
            drawn, sentence = panel(name, said, case, walkers[name], x, y)
            parts += drawn
            sentences.append(sentence)
        y += case.seq_q * SCALE + 56
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 50:g}">\n'
        f"  <title>{escape(TITLE)}</title>\n"
        f"  <desc>Queries from top to bottom, keys from left to right. An arrow is the "
        f"walk of one program. {escape(' '.join(sentences))}</desc>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8")
