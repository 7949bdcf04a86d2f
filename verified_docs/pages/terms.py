"""Terms of the glossary: on a rung, a term's first place leads to its entry.

Nothing is written twice: the words are the glossary's headings, with what stands in
their parentheses, and the script of the page fetches the entry when a reader asks for
it. A term that an author links is not linked once more, and one that is an everyday
word as well is linked by authors only.
"""

import posixpath
import re
from collections.abc import Collection, Mapping
from xml.etree.ElementTree import Element, SubElement

from markdown.treeprocessors import Treeprocessor

from verified_docs.pages.site import OfSite, source
from verified_docs.pages.sources import headings

GLOSSARY = "reference/glossary.md"
# What running text consists of: nothing that is folded, in a table, or a link already.
PROSE = {"blockquote", "dd", "dl", "em", "li", "ol", "p", "strong", "ul"}


class Terms(OfSite, Treeprocessor):
    """Links the terms of a rung, and marks every link to the glossary as one."""

    def run(self, root: Element) -> None:
        """Change the page in place."""
        docs, page = self.site.navigation.docs, source(self.md)
        if not page or page == GLOSSARY:
            return
        glossary = posixpath.relpath(GLOSSARY, posixpath.dirname(page))
        linked = set()
        for link in root.iter("a"):
            address, _, anchor = link.get("href", "").partition("#")
            if address == glossary and anchor:
                link.set("class", "term")
                linked.add(anchor)
        known = names(headings(docs / GLOSSARY), self.site.everyday)
        if known and "idea" in self.site.navigation.front(page):
            Linker(known, glossary, linked).visit(root)


class Linker:
    """Links the first place of each term whose anchor is not linked yet."""

    def __init__(self, anchors: Mapping[str, str], to: str, linked: set[str]) -> None:
        self.anchors = anchors
        self.to = to
        self.linked = linked
        longest = sorted(anchors, key=len, reverse=True)
        either = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest)
        self.pattern = re.compile(rf"(?<![\w-])({either})s?(?![\w-])", re.IGNORECASE)

    def visit(self, element: Element) -> None:
        """Link the terms of an element in the order in which it is read."""
        children = list(element)
        element[:] = []
        element.text = self.link(element, element.text)
        for child in children:
            if child.tag in PROSE and "data-line" not in child.attrib:
                self.visit(child)
            element.append(child)
            child.tail = self.link(element, child.tail)

    def link(self, parent: Element, text: str | None) -> str | None:
        """The text before its first new term; the link and the rest join the parent."""
        for match in self.pattern.finditer(text or ""):
            anchor = self.anchors[" ".join(match[1].casefold().split())]
            if anchor not in self.linked:
                self.linked.add(anchor)
                address = f"{self.to}#{anchor}"
                link = SubElement(parent, "a", {"class": "term", "href": address})
                link.text = match[0]
                link.tail = self.link(parent, match.string[match.end() :])
                return match.string[: match.start()]
        return text


def names(entries: Mapping[str, str], everyday: Collection[str]) -> dict[str, str]:
    """The anchor of each word that the glossary explains, everyday words left out."""
    found = {}
    for title, anchor in entries.items():
        term, _, others = title.removesuffix(")").partition(" (")
        for word in (term, *filter(None, others.split(", "))):
            if word.casefold() not in everyday:
                found[word.casefold()] = anchor
    return found
