"""The map on the home page, made from the navigation.

A page is a rung if it says in its front matter (a notebook: in metadata.page) what its
`idea` is. `after` names the page whose idea it takes up again. The short way to a page
is made of what that page needs, and of what those need.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from verified_docs.pages.errors import PageError
from verified_docs.pages.sources import front_matter


def render(
    docs: Path,
    nav: Sequence[Mapping[str, Any]],
    base: str = "",
    way: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """One numbered list for each part of the navigation that has rungs.

    `base` leads to the root of the site. The rungs of the short `way` are bold. Raises
    PageError where `after` names no rung.
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
        items = (
            _rung(base + page, front, places, bold=page in way)
            for page, front in fronts.items()
        )
        head = f'<p class="ladder-part">{escape(part)}</p>'
        shown += f"<div>{head}<ol>{''.join(items)}</ol></div>"
    shown = f'<div class="ladder">{shown}</div>'
    return f"<div>{_told(base, way)}{shown}</div>" if way else shown


def way(docs: Path, nav: Sequence[Mapping[str, Any]], goal: str) -> dict[str, str]:
    """The rungs of the short way to a page, that page last, by their short titles."""
    titles: dict[str, str] = {}
    ahead = [goal]
    while ahead:
        named = needs(nav, page := ahead.pop(), front_matter(docs / page).get("needs"))
        ahead += [each for each in named if each not in titles]
        titles |= named
    titles |= needs(nav, goal, [goal])
    pages = [page for part in parts(nav).values() for page in part]
    rungs = (page for page in pages if "idea" in front_matter(docs / page))
    return {page: titles[page] for page in rungs if page in titles}


def parts(nav: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Of each part with pages of its own: title by page."""
    return {
        part: {page: title for entry in pages for title, page in entry.items()}
        for section in nav
        for part, pages in section.items()
        if isinstance(pages, list)
    }


def needs(
    nav: Sequence[Mapping[str, Any]], page: str, named: Sequence[str] | None
) -> dict[str, str]:
    """The pages that a page needs, with their short titles. Raises PageError."""
    titles: dict[str, str] = {}
    for pages in parts(nav).values():
        titles |= {each: title.partition(":")[0] for each, title in pages.items()}
        if named is None and page in pages:
            before = list(pages)[: list(pages).index(page)]
            named = before[-1:]
    if unknown := [each for each in named or () if each not in titles]:
        raise PageError(f"{page}: needs: {unknown[0]}, which is no page of a part")
    return {each: titles[each] for each in named or ()}


def _told(base: str, way: Mapping[str, str]) -> str:
    """What is bold in the lists, and how long that way is."""
    goal, title = list(way.items())[-1]
    link = f'<a href="{_address(base + goal)}">{escape(title)}</a>'
    return (
        f"<p><strong>In bold</strong>: the short way to {link}, {len(way)} pages.</p>"
    )


def _rung(
    page: str, front: Mapping[str, Any], places: Mapping[str, str], *, bold: bool
) -> str:
    after = ""
    if origin := front.get("after"):
        if origin not in places:
            raise PageError(f"{page}: after: {origin}, which is no rung")
        after = f" <small>after {places[origin]}</small>"
    link = f'<a href="{_address(page)}">{escape(front["title"])}</a>'
    link = f"<strong>{link}</strong>" if bold else link
    return f"<li>{link}<span>{escape(str(front['idea']))}{after}</span></li>"


def _address(page: str) -> str:
    return f"{Path(page).with_suffix('').as_posix()}/"
