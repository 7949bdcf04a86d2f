"""The quiet line below a page's title: how long it takes, what it needs, what it gives.

The minutes are computed from the words that are not folded. The rest is front matter
(a notebook: metadata.page): `gives` says what the reader will have, `needs` what to
read first, see ladder.py. A page without `gives` has no such line. A rung beside the
short way says where that goes on.
"""

import math
import posixpath
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement

from markdown.treeprocessors import Treeprocessor

from verified_docs.pages.site import OfSite, source

PACE = 150  # words a minute, formulas and code between them


class Opening(OfSite, Treeprocessor):
    """Puts the line below the first heading; formulas are one word each by then."""

    def run(self, root: Element) -> None:
        """Change the page in place. Raises PageError where `needs` names no page."""
        page, nav = source(self.md), self.site.navigation
        title = root.find("h1")
        front = nav.front(page) if page else {}
        if title is None or "gives" not in front:
            return
        line = Element("div", {"class": "quiet", "data-search-exclude": ""})
        words = " ".join(texts(root)).split()
        SubElement(line, "strong").text = f"{math.ceil(len(words) / PACE)} min"

        def link(to: str, before: str) -> None:
            line[-1].tail = before
            address = posixpath.relpath(to, posixpath.dirname(page))
            SubElement(line, "a", {"href": address}).text = nav.short(to)

        for number, needed in enumerate(nav.needs(page)):
            link(needed, ", " if number else ". You need: ")
        line[-1].tail = told = f". You will have: {front['gives']}."
        pages = list(nav.titles)
        if "idea" in front and page in pages and page not in nav.way:
            ahead = [each for each in pages[pages.index(page) :] if each in nav.way]
            if ahead:
                link(ahead[-1], f"{told} A side road: the short way to ")
                link(ahead[0], " goes on with ")
                line[-1].tail = "."
        root.insert(list(root).index(title) + 1, line)


def texts(element: Element) -> Iterator[str]:
    """The texts in an element, those that are folded left out."""
    yield element.text or ""
    for child in element:
        if child.tag != "details":
            yield from texts(child)
        yield child.tail or ""
