"""The quiet line below a page's title: how long it takes, what it needs, what it gives.

The minutes are computed from the words that are not folded. The rest is front matter
(a notebook: metadata.page): `gives` says what the reader will have, and `needs` names
pages; without it the page needs the one before it in its part. A page without `gives`
has no such line. A rung beside the short way, see ladder.py, says where that goes on.
"""

import math
import posixpath
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor

from verified_docs.pages.ladder import needs, parts
from verified_docs.pages.site import Site, source
from verified_docs.pages.sources import front_matter

PACE = 150  # words a minute, formulas and code between them
FOLDED = "details"


class Opening(Treeprocessor):
    """Puts the line below the first heading; formulas are one word each by then."""

    def __init__(self, md: Markdown, site: Site) -> None:
        super().__init__(md)
        self.site = site

    def run(self, root: Element) -> None:
        """Change the page in place. Raises PageError where `needs` names no page."""
        page = source(self.md)
        title = root.find("h1")
        front = front_matter(self.site.evidence.root / "docs" / page) if page else {}
        if title is None or "gives" not in front:
            return
        line = Element("div", {"class": "quiet", "data-search-exclude": ""})
        SubElement(line, "strong").text = f"{minutes(root)} min"
        asked = needs(self.site.nav, page, front.get("needs"))
        for number, (needed, name) in enumerate(asked.items()):
            line[-1].tail = ", " if number else ". You need: "
            address = posixpath.relpath(needed, posixpath.dirname(page))
            SubElement(line, "a", {"href": address}).text = name
        line[-1].tail = f". You will have: {front['gives']}."
        if "idea" in front and (ahead := self.ahead(page)):
            line[-1].tail += " A side road: the short way to "
            for place, words in ((-1, " goes on with "), (0, ".")):
                address = posixpath.relpath(ahead[place], posixpath.dirname(page))
                SubElement(line, "a", {"href": address}).text = self.site.way[
                    ahead[place]
                ]
                line[-1].tail = words
        root.insert(list(root).index(title) + 1, line)

    def ahead(self, page: str) -> list[str]:
        """What of the short way comes after a page that is none of it."""
        pages = [each for part in parts(self.site.nav).values() for each in part]
        if page in self.site.way or page not in pages:
            return []
        return [each for each in pages[pages.index(page) :] if each in self.site.way]


def minutes(root: Element) -> int:
    """How long it takes to read what is not folded."""
    return math.ceil(len(" ".join(texts(root)).split()) / PACE)


def texts(element: Element) -> Iterator[str]:
    """The texts in an element, those that are folded left out."""
    yield element.text or ""
    for child in element:
        if child.tag != FOLDED:
            yield from texts(child)
        yield child.tail or ""
