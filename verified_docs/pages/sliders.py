"""A figure with a slider: the element that moves it, and what it shows at first.

The first picture is drawn when the page is built, by the script that draws it anew when
it is moved: what a reader sees who has no JavaScript, or who prints the page.
"""

import functools
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from py_mini_racer import MiniRacer

from verified_docs.pages.engine import modules


def render(name: str, data: Mapping[str, str], caption: str = "") -> str:
    """The figure: the element with its data, the picture in it, and a caption."""
    given = f"{json.dumps(name)}, {json.dumps(data)}"
    svg, said = json.loads(str(_engine().eval(f"JSON.stringify(still({given}))")))
    shown = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<figure><{name}{shown}><div class="replay-still" data-search-exclude>'
        f'<div class="replay-stage">{svg}</div><p>{escape(said)}</p></div></{name}>'
        f"{caption}</figure>"
    )


@functools.cache
def _engine() -> MiniRacer:
    """An engine that draws these figures as the browser does."""
    here = Path(__file__)
    scripts = here.parents[2] / "docs/assets/javascripts"
    names = ("figure.mjs", "shift.mjs", "roofline.mjs")
    return modules(here.with_suffix(".mjs"), *(scripts / name for name in names))
