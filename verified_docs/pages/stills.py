"""Figures that scripts move, as the build draws them: with the same scripts.

What a reader sees who has no JavaScript, or who prints the page.
"""

import functools
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from py_mini_racer import MiniRacer

from verified_docs.pages.engine import modules

SCRIPTS = "figure", "shift", "roofline", "replay/scene", "replay/stage"


def script(function: str, *arguments: Any) -> Any:
    """What a function of the scripts returns."""
    given = ", ".join(map(json.dumps, arguments))
    return json.loads(str(_engine().eval(f"JSON.stringify({function}({given}))")))


@functools.cache
def _engine() -> MiniRacer:
    """An engine that arranges and draws a figure as the browser does."""
    here = Path(__file__)
    folder = here.parents[2] / "docs/assets/javascripts"
    return modules(here.with_suffix(".mjs"), *(folder / f"{n}.mjs" for n in SCRIPTS))


def slider(name: str, data: Mapping[str, str], caption: str = "") -> str:
    """A figure with a slider: the element with its data, a picture, a caption."""
    svg, said = script("slider", name, data)
    shown = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<figure><{name}{shown}><div class="replay-still" data-search-exclude>'
        f'<div class="replay-stage">{svg}</div><p>{escape(said)}</p></div></{name}>'
        f"{caption}</figure>"
    )
