"""What the extension refuses or changes in the tree of a page."""

import re
from html import unescape
from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor

from verified_docs.pages.errors import PageError

JOINER = "\N{WORD JOINER}"
STASHED = re.compile("\x02.*?\x03")  # stands for raw HTML


class Steps(Treeprocessor):
    """Lets a step of an algorithm name its line of code at the end of its own line.

    attr_list wants {: data-line="rescale" } on a line below.
    """

    STEP = re.compile(r'\s*\{:?\s*data-line="([^"]*)"\s*\}\s*$')
    BLOCKS = frozenset(("p", "ul", "ol", "div", "figure", "table", "blockquote"))

    def run(self, root: Element) -> None:
        """Turn the text into an attribute."""
        for element in root.iter():
            if element.tag in ("li", "p"):
                self._step(element)

    def _step(self, element: Element) -> None:
        owner, place = element, "text"
        for child in element:
            if child.tag in self.BLOCKS:
                break
            owner, place = child, "tail"
        text = getattr(owner, place) or ""
        if match := self.STEP.search(text):
            setattr(owner, place, text[: match.start()])
            element.set("data-line", match[1])


class NoIndentedCode(Treeprocessor):
    """Refuses code by indentation or in <pre>, which is code from no snippet."""

    def run(self, root: Element) -> None:
        """Raises PageError."""
        for element in root.iter("pre"):
            held = "".join(element.itertext())
            text = unescape(STASHED.sub("", held)).strip()
            raise PageError(
                f"an indented code block or a <pre>, {text[:60]!r}: code comes from "
                "snippets; text of a list or an admonition is indented by four spaces"
            )


class Headers(Treeprocessor):
    """Leaves no table header empty: a header cell must have something to say.

    Markdown cannot write a table without a header. One whose cells are all empty is
    dropped; an empty cell beside others becomes an ordinary one. axe-core reads no
    MathML, so a header of nothing but a formula gets a character that nobody sees.
    """

    def run(self, root: Element) -> None:
        """Change the headers in place."""
        for table in root.iter("table"):
            head = table.find("thead")
            cells = list(head.iter("th")) if head is not None else []
            if head is not None and all(_empty(cell) for cell in cells):
                table.remove(head)
                continue
            for cell in cells:
                if _empty(cell):
                    cell.tag = "td"
                elif all("arithmatex" in e.get("class", "") for e in cell) and not (
                    _own_text(cell)
                ):
                    cell.text = JOINER


def _empty(cell: Element) -> bool:
    return not len(cell) and not _own_text(cell)


def _own_text(cell: Element) -> str:
    """The text of a cell outside its elements."""
    return "".join([cell.text or "", *(child.tail or "" for child in cell)]).strip()
