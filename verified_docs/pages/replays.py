"""A recorded run of a kernel: the element that plays it, and its key frames.

The record has what each line did. The key frames are drawn from it when the page is
built: what a reader sees who has no JavaScript, or who prints the page. The height of
the element is known then as well, so that nothing moves when its script is there.
"""

import functools
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from py_mini_racer import MiniRacer

from verified_docs import layout
from verified_docs.pages.engine import started
from verified_docs.pages.plots import parse
from verified_docs.pages.site import Site

OPTIONS = {"replay", "run", "beside"}
SCENE = "docs/assets/javascripts/replay/scene.mjs"
# Boxes for a stage, in pixels: beside the navigation of a desktop, and on a phone.
WIDE = {"width": 808, "height": 480, "beside": 378}
NARROW = {"width": 340, "height": 520, "beside": 0}
# Letters in a line of a sentence there, and the most lines that it may take.
LETTERS = {"lines": (110, 3), "many": (46, 5)}
WIDTH, EDGE, GAP, LINE = 400, 10, 18, 22
CELL = 34  # the width of a cell that holds a number
CHARACTER = 7.5  # of a digit
Value = float | int | str | None
Values = list[Value]
Facts = dict[str, Any]
Drawn = tuple[str, float, float]  # SVG from 0, 0 on, its width and its height


class ReplayError(ValueError):
    """A replay that cannot be shown, with the reason."""


def render(site: Site, body: str) -> str:
    """The element for the run that the YAML body names. Raises ValueError."""
    options = parse(body, OPTIONS, "replay")
    name = options["replay"]
    path = site.evidence.root / layout.replay_record(name)
    if not path.is_file():
        raise ReplayError(f"there is no replay of {name}")
    record = json.loads(path.read_text("utf-8"))
    runs: dict[str, Facts] = {run["name"]: run for run in record["runs"]}
    if (chosen := options.get("run", next(iter(runs)))) not in runs:
        known = ", ".join(runs)
        raise ReplayError(f"there is no run {chosen!r}; the runs are: {known}")
    run = runs[chosen]
    attributes = {
        "src": f"{site.base}{layout.replay_record(name)}",
        "snippet": name,
        "data-run": run["name"],
        "id": "replay-" + name.removesuffix(".py").replace("/", "-"),
    }
    if "beside" in options:
        attributes["data-beside"] = options["beside"]
    attributes["style"] = ";".join(f"--{k}:{v}" for k, v in sizes(record).items())
    shown = " ".join(f'{key}="{escape(text)}"' for key, text in attributes.items())
    frames = "".join(
        f"<li>{draw(name, run, n)}<p>{escape(run['steps'][n]['say'])}</p></li>"
        for n in run["frames"]
    )
    return (
        f"<verified-replay {shown} data-search-exclude>"
        f'<figure class="diagram replay-frames"><ol>{frames}</ol><figcaption>'
        f"{caption(name, run)}</figcaption></figure></verified-replay>"
    )


def sizes(record: Facts) -> dict[str, str]:
    """What decides how high the element is, on a desktop and on a phone."""
    runs = json.dumps(record["runs"])
    high = {
        key: f"{_engine().eval(f'needed({runs}, {json.dumps(box)})')}px"
        for key, box in (("wide", WIDE), ("narrow", NARROW))
    }
    longest = max(map(said, record["runs"]))
    lines = {k: str(min(-(-longest // n), most)) for k, (n, most) in LETTERS.items()}
    return {**high, **lines, "bars": str(min(len(record["runs"]), 2))}


def said(run: Facts) -> int:
    """The letters of the longest that is said of a step, program or formula with it."""
    label = max(len(f"{p.get('kernel', '')}, {p['label']}") for p in run["programs"])
    formula = sum(len(f["text"]) + 20 for f in run["formula"].values())
    *steps, last = (len(step["say"]) for step in run["steps"])
    return max(len("Program 1 of 1") + label + max(steps, default=0), last + formula)


@functools.cache
def _engine() -> MiniRacer:
    """An engine that arranges a stage as the browser does."""
    script = Path(__file__).parents[2] / SCENE
    return started(re.sub("^export ", "", script.read_text("utf-8"), flags=re.M))


def caption(name: str, run: Facts) -> str:
    """What is shown, and that the bytes are those of the formula."""
    told = "".join(
        f" Bytes {key}: {escape(formula['text'])} = {formula['value']}."
        for key, formula in run["formula"].items()
    )
    return (
        f"A run of <code>{escape(name)}</code>, recorded under Triton's interpreter: "
        f"{escape(run['title'])}.{told}"
    )


def indices(ranges: list[int]) -> list[int]:
    """The elements of [start, count, start, count, ...]."""
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return [i for start, count in pairs for i in range(start, start + count)]


def stage(
    run: Facts, last: int
) -> tuple[dict[str, Values], dict[str, set[int]], dict[str, Values]]:
    """What is where after a step.

    The values of each array, None where nothing was written yet; its elements that were
    touched since the last mark; the values of each variable on the chip.
    """
    memory = {
        each["name"]: list(each.get("values", [None] * math.prod(each["shape"])))
        for each in run["tensors"]
    }
    now: dict[str, set[int]] = {}
    held: dict[str, Values] = {}
    for step in run["steps"][: last + 1]:
        if "mark" in step:
            now = {}
        if step.get("mark") == "program":
            held = {}
        for name in step.get("drop", ()):
            held.pop(name, None)
        for name, ranges, *values in [*step.get("reads", ()), *step.get("writes", ())]:
            touched = indices(ranges)
            now.setdefault(name, set()).update(touched)
            if values:
                for index, value in zip(touched, *values, strict=True):
                    memory[name][index] = value
        held |= step.get("state", {})
    return memory, now, held


def draw(name: str, run: Facts, last: int) -> str:
    """The SVG of one frame: memory above, the chip below."""
    memory, now, held = stage(run, last)
    above = [
        grid(each, memory[each["name"]], now.get(each["name"]))
        for each in run["tensors"]
    ]
    below, told = [], []
    for item in run["state"]:
        if values := held.get(item["name"]):
            flat = len(item["shape"]) < 2
            below.append(bars(item, values, run) if flat else grid(item, values))
            told.append(f"{item['label']}: {', '.join(map(text, values))}")
    arrays, height = flow(above, LINE)
    chip, end = flow(below, height + 2 * LINE)
    words = "; ".join(told)
    head = f"{name}, step {last + 1} of {len(run['steps'])}"
    return (
        f'<svg class="replay-frame" viewBox="0 0 {WIDTH} {end + EDGE}" role="img">'
        f"<title>{escape(head)}</title><desc>On the chip: {escape(words)}</desc>"
        f'<text class="ink" x="{EDGE}" y="14" font-size="13">GPU memory</text>{arrays}'
        f'<rect class="soft" x="1" y="{height + 8}" width="{WIDTH - 2}" '
        f'height="{end - height}" rx="6"/>'
        f'<text class="ink" x="{EDGE}" y="{height + 26}" font-size="13">the chip</text>'
        f"{chip}</svg>"
    )


def flow(parts: list[Drawn], top: float) -> tuple[str, float]:
    """The parts side by side, in as many lines as they need, and where they end."""
    shown, x, below = [], float(EDGE), top
    for svg, width, height in parts:
        if x > EDGE and x + width > WIDTH - EDGE:
            x, top = EDGE, below + 10
        shown.append(f'<g transform="translate({x:g},{top:g})">{svg}</g>')
        x += width + GAP
        below = max(below, top + height)
    return "".join(shown), below + 10


def grid(item: Facts, values: Values, now: set[int] | None = None) -> Drawn:
    """A matrix, or a vector as one row of cells; its values deepen its colour."""
    shape = [1] * (2 - len(item["shape"])) + item["shape"]
    height, width = shape[-2:]
    turned = item.get("turned", False)
    across, down = (height, width) if turned else (width, height)
    wide = min(CELL, (WIDTH - 2 * EDGE) / across) if down == 1 or across == 1 else 18.0
    high = 22.0 if down == 1 else 18.0
    most = largest(values)
    cells = []
    for n, value in enumerate(values):
        row, column = divmod(n, width)
        x, y = (row, column) if turned else (column, row)
        if value is not None:
            box = x * wide, LINE + y * high, wide, high
            cells.append(cell(item, value, box, abs(number(value)) / most))
    lines = [f"M0,{LINE + y * high:g}h{across * wide:g}" for y in range(down + 1)]
    lines += [f"M{x * wide:g},{LINE}v{down * high:g}" for x in range(across + 1)]
    outline = f'<path class="line" d="{"".join(lines)}" stroke-opacity="0.35"/>'
    places = [divmod(n, width) for n in now or ()]
    touched = boxes([(y, x) if turned else (x, y) for y, x in places])
    marks = "".join(
        f'<rect class="accent" x="{x * wide + 1:g}" y="{LINE + y * high + 1:g}" '
        f'width="{w * wide - 2:g}" height="{h * high - 2:g}"/>'
        for x, y, w, h in touched
    )
    svg = "".join([label(item), *cells, outline, marks])
    return svg, across * wide, LINE + down * high


def boxes(cells: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """One box around the cells if they fill it, else one around each."""
    if not cells:
        return []
    left, top = (min(cell[n] for cell in cells) for n in (0, 1))
    width = max(x for x, _ in cells) - left + 1
    height = max(y for _, y in cells) - top + 1
    if len(cells) == width * height:
        return [(left, top, width, height)]
    return [(x, y, 1, 1) for x, y in cells]


def cell(item: Facts, value: Value, box: tuple[float, ...], tint: float) -> str:
    """A cell: its colour, as deep as the tint, and its number if there is room."""
    x, y, width, height = box
    shown = (
        f'<rect class="{colour(item)}" x="{x:g}" y="{y:g}" width="{width:g}" '
        f'height="{height:g}" fill-opacity="{0.06 + 0.4 * tint:.2f}"/>'
    )
    fits = [s for s in map(text, [value] * 3, (3, 2, 1)) if len(s) * CHARACTER <= width]
    if fits and height > 18:
        shown += (
            f'<text class="ink" x="{x + width / 2:g}" y="{y + height / 2 + 5:g}" '
            f'font-size="13" text-anchor="middle">{fits[0]}</text>'
        )
    return shown


def number(value: Value) -> float:
    """The value, or 0 where it is no finite number."""
    return value if isinstance(value, int | float) else 0


def largest(values: Values) -> float:
    """The largest value without its sign; 1 where there is none but 0."""
    return max((abs(number(value)) for value in values), default=0) or 1


def bars(item: Facts, values: Values, run: Facts) -> Drawn:
    """A number for each row, and a bar as long as it is large, of all in the run."""
    states = (step.get("state", {}) for step in run["steps"])
    most = largest([value for each in states for value in each.get(item["name"], ())])
    shown = [label(item)]
    for n, value in enumerate(values):
        y = LINE + n * 18
        size = 56 * abs(number(value)) / most
        shown.append(
            f'<rect class="{colour(item)}" x="0" y="{y}" width="{size:.1f}" '
            f'height="16" fill-opacity="0.25"/><text class="ink" x="3" y="{y + 13}" '
            f'font-size="13">{text(value)}</text>'
        )
    return "".join(shown), 56, LINE + len(values) * 18


def label(item: Facts) -> str:
    """The name above a part, in its colour."""
    name = escape(item["label"])
    return f'<text class="{colour(item)}" x="0" y="14" font-size="14">{name}</text>'


def colour(item: Facts) -> str:
    """The class of a tensor's colour."""
    return f"t-{item['colour']}" if item["colour"] else "ink"


def text(value: Value, digits: int = 3) -> str:
    """A number as a cell has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.replace("-", "\N{MINUS SIGN}").replace("inf", "∞")
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")
