"""A recorded run of a kernel: the element that plays it, and its key frames.

The record has what each line did. The key frames are drawn from it when the page is
built: what a reader sees who has no JavaScript, or who prints the page. The height of
the element is known then as well, so that nothing moves when its script is there.
"""

from html import escape
from typing import Any

from verified_docs import layout
from verified_docs.evidence import records
from verified_docs.pages.errors import PageError
from verified_docs.pages.site import Site
from verified_docs.pages.sources import options
from verified_docs.pages.stills import script

REPLAY = {"replay": str, "run": "", "steps": {}}
# Boxes for a stage, in pixels: on a desktop, with code beside it; on a phone; a frame.
WIDE = {"width": 808, "height": 480, "beside": 378}
NARROW = {"width": 340, "height": 520, "beside": 0}
FRAME = {"width": 400, "height": 640, "beside": 0}
# Letters in a line of a sentence there, and the most lines that it may take.
LETTERS = {"lines": (110, 3), "many": (46, 7)}
Facts = dict[str, Any]


def render(site: Site, body: str) -> str:
    """The element for the run that the YAML body names."""
    told = options(body, REPLAY)
    name = told["replay"]
    path = site.evidence.root / layout.replay_record(name)
    if not path.is_file():
        how = f"describe it in {layout.replay_file(name)}, run `pytest tests/replays`"
        raise PageError(f"no run of {name} is recorded: {how}")
    record = records.replay(path)
    runs: dict[str, Facts] = {run["name"]: run for run in record["runs"]}
    run = runs[told["run"] or next(iter(runs))]
    place = "replay-" + name.removesuffix(".py").replace("/", "-")
    ordered = [run, *runs.values()]
    steps = told["steps"].items()
    anchors = "".join(anchor(place, ordered, *step) for step in steps)
    attributes = {
        "src": f"{site.base}{layout.replay_record(name)}",
        "snippet": name,
        "data-run": run["name"],
        "id": place,
    }
    attributes["style"] = ";".join(f"--{k}:{v}" for k, v in sizes(record).items())
    shown = " ".join(f'{key}="{escape(text)}"' for key, text in attributes.items())
    drawn = script("frames", run, name, FRAME)
    frames = "".join(
        f'<li><div class="replay-stage">{svg}</div>'
        f"<p>{escape(run['steps'][n]['say'])}</p></li>"
        for n, svg in zip(run["frames"], drawn, strict=True)
    )
    # Keys reach it where a click focuses no button, as in Safari.
    return (
        f'<verified-replay {shown} tabindex="-1" data-search-exclude>{anchors}'
        f'<figure class="replay-frames"><ol>{frames}</ol><figcaption>'
        f"{caption(name, run)}</figcaption></figure></verified-replay>"
    )


def anchor(place: str, runs: list[Facts], name: str, words: str) -> str:
    """What a link of the page leads to: the first step of which the words are said."""
    for run in runs:
        for n, step in enumerate(run["steps"], 1):
            if words in step["say"]:
                at = escape(f"#{place}={run['name']}:{n}")
                return f'<i id="step-{escape(name)}" data-hash="{at}"></i>'
    raise PageError(f"of no step is it said that {words!r}")


def sizes(record: Facts) -> dict[str, str]:
    """What decides how high the element is, on a desktop and on a phone."""
    high = {
        key: f"{script('needed', record['runs'], box)}px"
        for key, box in (("wide", WIDE), ("narrow", NARROW))
    }
    longest = max(map(said, record["runs"]))
    lines = {k: str(min(-(-longest // n), most)) for k, (n, most) in LETTERS.items()}
    bars = min(len(record["runs"]), 2) + ("compare" in record)
    return {**high, **lines, "bars": str(bars)}


def said(run: Facts) -> int:
    """The letters of the longest that is said of a step, program or formula with it."""
    label = max(len(f"{p.get('kernel', '')}, {p['label']}") for p in run["programs"])
    formula = sum(len(f["text"]) + 20 for f in run["formula"].values())
    *steps, last = (len(step["say"]) for step in run["steps"])
    return max(len("Program 1 of 1") + label + max(steps, default=0), last + formula)


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
