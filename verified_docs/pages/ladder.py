"""The map on the home page, made from the navigation.

A page is a rung if it says in its front matter (a notebook: in metadata.page) what its
`idea` is. `after` names the page whose idea it takes up again.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from verified_docs.pages.errors import PageError
from verified_docs.pages.sources import front_matter


def render(docs: Path, nav: Sequence[Mapping[str, Any]], base: str = "") -> str:
    """One numbered list for each part of the navigation that has rungs.

    `base` is the way to the root of the site. Raises PageError where `after` names
    no rung.
    """
    rungs: dict[str, dict[str, dict[str, Any]]] = {}
    for part, pages in parts(nav).items():
        fronts = {n: front_matter(docs / n) | {"title": t} for n, t in pages.items()}
        if known := {page: front for page, front in fronts.items() if "idea" in front}:
            rungs[part] = known
    places = {
        page: f"{escape(part)} {number}"
        for part, fronts in rungs.items()
        for number, page in enumerate(fronts, 1)
    }
    shown = ""
    for part, fronts in rungs.items():
        items = (_rung(base + page, front, places) for page, front in fronts.items())
        head = f'<p class="ladder-part">{escape(part)}</p>'
        shown += f"<div>{head}<ol>{''.join(items)}</ol></div>"
    return f'<div class="ladder">{shown}</div>'


def parts(nav: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Of each part with pages of its own: title by page."""
    return {
        part: {page: title for entry in pages for title, page in entry.items()}
        for section in nav
        for part, pages in section.items()
        if isinstance(pages, list)
    }


def _rung(page: str, front: Mapping[str, Any], places: Mapping[str, str]) -> str:
    after = ""
    if origin := front.get("after"):
        if origin not in places:
            raise PageError(f"{page}: after: {origin}, which is no rung")
        after = f" <small>after {places[origin]}</small>"
    address = f"{Path(page).with_suffix('').as_posix()}/"
    return (
        f'<li><a href="{address}">{escape(front["title"])}</a>'
        f"<span>{escape(str(front['idea']))}{after}</span></li>"
    )
