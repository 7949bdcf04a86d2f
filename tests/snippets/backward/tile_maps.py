"""The tile maps of backward passes, drawn from traces of their two kernels.

`TRITON_INTERPRET=1 python -m tests.snippets.backward.tile_maps` draws them again.
"""

from itertools import groupby
from pathlib import Path
from types import ModuleType

from snippets.backward import causal_backward, window_backward
from tests.snippets.attention.tile_maps import (
    LEFT,
    NAMES,
    SCALE,
    TOP,
    edge,
    svg,
    text,
    tile,
)
from tests.snippets.attention.tiles import SKIPPED, Case
from tests.snippets.backward.tiles import trace

FOLDER = Path(__file__).parents[3] / "docs/assets/diagrams/backward"
KERNELS = {"dq": "dQ: row by row", "dk": "dK, dV: column by column"}
# What it is, the call, and the program of each kernel whose walk is drawn.
Row = tuple[str, Case, dict[str, int]]


def in_window(seq_q: int, window: int) -> Case:
    """A call with 128 keys."""
    return Case(seq_q, 128, 16, 32, {"causal": True, "window": window})


DIAGRAMS: dict[str, tuple[str, ModuleType, tuple[Row, ...]]] = {
    "causal-tiles.svg": (
        "Tiles that the two kernels of a causal backward pass visit",
        causal_backward,
        (
            ("128 queries and keys", Case(128, 128, 16, 32), {"dq": 5, "dk": 1}),
            ("64 queries, 128 keys", Case(64, 128, 16, 32), {"dq": 1, "dk": 2}),
        ),
    ),
    "window-tiles.svg": (
        "Tiles that the two kernels of a backward pass in a sliding window visit",
        window_backward,
        (
            ("128 of each, window 72", in_window(128, 72), {"dq": 6, "dk": 1}),
            ("64 queries, 128 keys, window 24", in_window(64, 24), {"dq": 1, "dk": 2}),
        ),
    ),
}


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
    module: ModuleType, name: str, shown: Row, x: float, y: float
) -> tuple[list[str], str]:
    """One map whose scores begin at x, y; and what it says in words."""
    said, case, walkers = shown
    rows = trace(module, case)[name]
    found = "".join(rows)
    counts = ", ".join(f"{found.count(each)} {NAMES[each]}" for each in NAMES)
    parts = [text(x, y - 26, KERNELS[name]), text(x, y - 8, said, 13)]
    width, height = case.block_n * SCALE, case.block_m * SCALE
    walk = []
    for row, letters in enumerate(rows):
        for col, letter in enumerate(letters):
            parts += tile(x + col * width, y + row * height, width, height, letter)
            if (row if name == "dq" else col) == walkers[name] and letter != SKIPPED:
                walk.append((x + (col + 0.5) * width, y + (row + 0.5) * height))
    diagonal = case.seq_k - case.seq_q
    parts.append(edge(case, diagonal, x, y))
    if "window" in case.options:
        parts.append(edge(case, diagonal - case.options["window"], x, y))
    parts += arrow(walk, down=name == "dk")
    lines = rows if name == "dq" else ["".join(col) for col in zip(*rows, strict=True)]
    words = "; ".join(
        ", ".join(f"{len(list(run))} {NAMES[each]}" for each, run in groupby(letters))
        for letters in lines
    )
    by = "queries" if name == "dq" else "keys"
    return parts, f"{KERNELS[name]}, {said}: {counts}; by blocks of {by}: {words}."


def draw(title: str, module: ModuleType, rows: tuple[Row, ...]) -> str:
    """The SVG: a row of maps for each call, the two kernels beside each other."""
    parts, sentences, y = [], ["An arrow is the walk of one program."], TOP
    for row in rows:
        for x, name in zip(LEFT, KERNELS, strict=True):
            drawn, sentence = panel(module, name, row, x, y)
            parts += drawn
            sentences.append(sentence)
        y += row[1].seq_q * SCALE + 56
    return svg(title, parts, sentences, y - 50)


if __name__ == "__main__":
    for name, diagram in DIAGRAMS.items():
        (FOLDER / name).write_text(draw(*diagram), encoding="utf-8")
