"""What the extension changes in the tree of a page."""

from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor

JOINER = "\N{WORD JOINER}"


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
