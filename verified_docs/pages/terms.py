"""Terms of the glossaries: on a rung, a term's first place leads to its entry.

Nothing is written twice: the words are the headings of both pages, with what stands in
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

GLOSSARIES = ("reference/glossary.md", "reference/glossary-gpu.md")
# What running text consists of: nothing that is folded, in a table, or a link already.
PROSE = {"blockquote", "dd", "dl", "em", "li", "ol", "p", "strong", "ul"}


class Terms(OfSite, Treeprocessor):
    """Links the terms of a rung, and marks every link to an entry as one."""

    def run(self, root: Element) -> None:
        """Change the page in place."""
        docs, page = self.site.navigation.docs, source(self.md)
        if not page:
            return
        entries = {}
        for glossary in GLOSSARIES:
            to = posixpath.relpath(glossary, posixpath.dirname(page))
            for title, anchor in headings(docs / glossary).items():
                entries[title] = f"{to}#{anchor}"
        linked = set()
        for link in root.iter("a"):
            if (address := link.get("href", "")) in entries.values():
                link.set("class", "term")
                linked.add(address)
        known = names(entries, self.site.everyday)
        if known and "idea" in self.site.navigation.front(page):
            Linker(known, linked).visit(root)


class Linker:
    """Links the first place of each term whose entry is not linked yet."""

    def __init__(self, entries: Mapping[str, str], linked: set[str]) -> None:
        self.entries = entries
        self.linked = linked
        longest = sorted(entries, key=len, reverse=True)
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
            address = self.entries[" ".join(match[1].casefold().split())]
            if address not in self.linked:
                self.linked.add(address)
                link = SubElement(parent, "a", {"class": "term", "href": address})
                link.text = match[0]
                link.tail = self.link(parent, match.string[match.end() :])
                return match.string[: match.start()]
        return text


def names(entries: Mapping[str, str], everyday: Collection[str]) -> dict[str, str]:
    """The entry of each word that a glossary explains, everyday words left out."""
    found = {}
    for title, address in entries.items():
        term, _, others = title.removesuffix(")").partition(" (")
        for word in (term, *filter(None, others.split(", "))):
            if word.casefold() not in everyday:
                found[word.casefold()] = address
    return found
