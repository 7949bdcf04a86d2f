"""Figures that scripts move, as the build draws them: with the same scripts.

What a reader sees who has no JavaScript, or who prints the page.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from verified_docs.pages.engine import engine

HERE = Path(__file__)
FOLDER = HERE.parents[2] / "docs/assets/javascripts"
SCRIPTS = "figure", "shift", "roofline", "replay/scene", "replay/stage"


def script(function: str, *arguments: Any) -> Any:
    """What a function of the scripts returns."""
    paths = (FOLDER / f"{name}.mjs" for name in SCRIPTS)
    return engine(HERE.with_suffix(".mjs"), *paths).call(function, *arguments)


def slider(name: str, data: Mapping[str, str], caption: str = "") -> str:
    """A figure with a slider: the element with its data, a picture, a caption."""
    svg, said = script("slider", name, data)
    shown = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<figure><{name}{shown}><div class="replay-still" data-search-exclude>'
        f'<div class="replay-stage">{svg}</div><p>{escape(said)}</p></div></{name}>'
        f"{caption}</figure>"
    )
