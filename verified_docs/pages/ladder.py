"""The map on the home page, made from the navigation.

A page is a rung if it says in its front matter (a notebook: in metadata.page) what its
`idea` is. `after` names the page whose idea it takes up again.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from verified_docs.pages import sources


class LadderError(ValueError):
    """A navigation or a rung that cannot be drawn, with the reason."""


def render(docs: Path, nav: Sequence[Mapping[str, Any]], base: str = "") -> str:
    """One numbered list for each part of the navigation that has rungs.

    `base` is the way to the root of the site. Raises LadderError where `after` names
    no rung.
    """
    facts: dict[str, Mapping[str, Any]] = {}
    places: dict[str, tuple[str, int]] = {}  # the part, and the number there
    for part, pages in parts(nav).items():
        fronts = {page: front_matter(docs / page) for page in pages}
        rungs = {page: front for page, front in fronts.items() if "idea" in front}
        facts |= rungs
        places |= {page: (part, n) for n, page in enumerate(rungs, 1)}
    shown = ""
    for part, pages in parts(nav).items():
        items = "".join(
            _rung(base + page, title, facts[page], places)
            for page, title in pages.items()
            if page in facts
        )
        if items:
            head = f'<p class="ladder-part">{escape(part)}</p>'
            shown += f"<div>{head}<ol>{items}</ol></div>"
    return f'<div class="ladder">{shown}</div>'


def front_matter(path: Path) -> dict[str, Any]:
    """What a page says of itself."""
    text = sources.read(path)
    if path.suffix == ".ipynb":
        return dict(json.loads(text)["metadata"].get("page", {}))
    head, closed, _ = text.removeprefix("---\n").partition("\n---\n")
    return dict(sources.settings(head)) if closed and text.startswith("---\n") else {}


def parts(nav: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Of each part with pages of its own: title by page."""
    return {
        part: {page: title for entry in pages for title, page in entry.items()}
        for section in nav
        for part, pages in section.items()
        if isinstance(pages, list)
    }


def _rung(
    page: str,
    title: str,
    front: Mapping[str, Any],
    places: Mapping[str, tuple[str, int]],
) -> str:
    after = ""
    if origin := front.get("after"):
        if origin not in places:
            raise LadderError(f"{page}: after: {origin}, which is no rung")
        part, number = places[origin]
        after = f" <small>after {escape(part)} {number}</small>"
    address = f"{Path(page).with_suffix('').as_posix()}/"
    return (
        f'<li><a href="{address}">{escape(title)}</a>'
        f"<span>{escape(str(front['idea']))}{after}</span></li>"
    )
