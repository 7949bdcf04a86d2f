"""The tile map of the backward pass in a window, drawn from traces of its kernels.

`TRITON_INTERPRET=1 python -m tests.snippets.backward.window_tile_maps` draws it again.
"""

from html import escape
from pathlib import Path

from snippets.backward import window_backward
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
from tests.snippets.backward.tile_maps import KERNELS, arrow
from tests.snippets.backward.tiles import trace

FILE = Path(__file__).parents[3] / "docs/assets/diagrams/backward/window-tiles.svg"
TITLE = "Tiles that the two kernels of a backward pass in a sliding window visit"
# A row of maps for each: what it is, the call, and the program whose walk is drawn.
ROWS = (
    (
        "128 of each, window 72",
        Case(128, 128, 16, 32, {"causal": True, "window": 72}),
        {"dq": 6, "dk": 1},
    ),
    (
        "64 queries, 128 keys, window 24",
        Case(64, 128, 16, 32, {"causal": True, "window": 24}),
        {"dq": 1, "dk": 2},
    ),
)


def panel(
    name: str, said: str, case: Case, walker: int, x: float, y: float
) -> tuple[list[str], str]:
    """One map whose scores begin at x, y; and what it says in words."""
    rows = trace(window_backward, case)[name]
    parts = [text(x, y - 26, KERNELS[name]), text(x, y - 8, said, 13)]
    width, height = case.block_n * SCALE, case.block_m * SCALE
    walk = []
    for row, letters in enumerate(rows):
        for col, letter in enumerate(letters):
            parts += tile(x + col * width, y + row * height, width, height, letter)
            if (row if name == "dq" else col) == walker and letter != SKIPPED:
                walk.append((x + (col + 0.5) * width, y + (row + 0.5) * height))
    diagonal = case.seq_k - case.seq_q
    parts += [
        edge(case, lower, x, y)
        for lower in (diagonal, diagonal - case.options["window"])
    ]
    parts += arrow(walk, down=name == "dk")
    lines = rows if name == "dq" else ["".join(col) for col in zip(*rows, strict=True)]
    words = "; ".join(
        ", ".join(NAMES[letter] for letter in letters) for letters in lines
    )
    by = "queries" if name == "dq" else "keys"
    return parts, f"{KERNELS[name]}, {said}; by blocks of {by}: {words}."


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
