"""The navigation: what a page needs, the short way to one, and the map at home.

A page is a rung if it says in its front matter (a notebook: in metadata.page) what its
`idea` is. `after` names the page whose idea it takes up again, and `needs` the pages to
read first; without it, that is the page before it in its part. The short way to a page
is made of what that page needs, and of what those need.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from verified_docs.pages.errors import PageError
from verified_docs.pages.sources import front_matter


@dataclass(frozen=True)
class Navigation:
    """The pages in `docs` as the `nav` of mkdocs.yml has them.

    The short way leads to the page `goal`, if there is one.
    """

    docs: Path
    nav: Sequence[Mapping[str, Any]] = ()
    goal: str = ""

    @functools.cached_property
    def parts(self) -> dict[str, dict[str, str]]:
        """Of each part with pages of its own: title by page."""
        return {
            part: {page: title for entry in pages for title, page in entry.items()}
            for section in self.nav
            for part, pages in section.items()
            if isinstance(pages, list)
        }

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """The title of each page of a part, in their order."""
        return {k: title for part in self.parts.values() for k, title in part.items()}

    def short(self, page: str) -> str:
        """The first words of a page's title."""
        return self.titles[page].partition(":")[0]

    def front(self, page: str) -> dict[str, Any]:
        """What a page says of itself."""
        return front_matter(self.docs / page)

    def needs(self, page: str) -> list[str]:
        """The pages that a page needs. Raises PageError."""
        part = next((list(p) for p in self.parts.values() if page in p), [page])
        before = part[: part.index(page)][-1:]
        named: list[str] = self.front(page).get("needs", before)
        if unknown := [each for each in named if each not in self.titles]:
            raise PageError(f"{page}: needs: {unknown[0]}, which is no page of a part")
        return named

    @functools.cached_property
    def way(self) -> list[str]:
        """The rungs of the short way, the goal last. Raises PageError."""
        found: set[str] = set()
        ahead = [self.goal] if self.goal else []
        while ahead:
            found.add(page := ahead.pop())
            ahead += [each for each in self.needs(page) if each not in found]
        pages = (page for page in self.titles if page in found)
        rungs = [page for page in pages if "idea" in self.front(page)]
        if self.goal and self.goal not in rungs:
            raise PageError(f"mkdocs.yml: goal: {self.goal}, which is no rung")
        return rungs


def render(nav: Navigation, base: str = "") -> str:
    """One numbered list for each part that has rungs; those of the short way are bold.

    `base` leads to the root of the site. Raises PageError where `after` names no rung.
    """
    rungs = {
        part: {page: front for page in pages if "idea" in (front := nav.front(page))}
        for part, pages in nav.parts.items()
    }
    places = {
        page: f"{escape(part)} {number}"
        for part, pages in rungs.items()
        for number, page in enumerate(pages, 1)
    }
    shown = ""
    for part, pages in rungs.items():
        items = (_rung(nav, page, front, base, places) for page, front in pages.items())
        head = f'<p class="ladder-part">{escape(part)}</p>'
        shown += f"<div>{head}<ol>{''.join(items)}</ol></div>" if pages else ""
    shown = f'<div class="ladder">{shown}</div>'
    if not nav.way:
        return shown
    link = _link(base + nav.way[-1], nav.short(nav.way[-1]))
    told = f"the short way to {link}, {len(nav.way)} pages."
    key = f'<p class="ladder-way"><strong>In bold, beside a line</strong>: {told}</p>'
    return f"<div>{key}{shown}</div>"


def _rung(
    nav: Navigation,
    page: str,
    front: Mapping[str, Any],
    base: str,
    places: Mapping[str, str],
) -> str:
    after = ""
    if origin := front.get("after"):
        if origin not in places:
            raise PageError(f"{page}: after: {origin}, which is no rung")
        after = f" <small>after {places[origin]}</small>"
    link = _link(base + page, nav.titles[page])
    link = f"<strong>{link}</strong>" if page in nav.way else link
    return f"<li>{link}<span>{escape(str(front['idea']))}{after}</span></li>"


def _link(page: str, title: str) -> str:
    address = Path(page).with_suffix("").as_posix()
    return f'<a href="{address}/">{escape(title)}</a>'
