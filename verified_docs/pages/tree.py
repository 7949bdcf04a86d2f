"""What the extension changes in the tree of a page."""

from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor

JOINER = "\N{WORD JOINER}"


class Headers(Treeprocessor):
    """Leaves no table header empty: a header cell must have something to say.

    Markdown cannot write a table without a header. One whose cells are all empty is
    dropped; an empty cell beside others becomes an ordinary one. axe-core reads no
    MathML, so a header that begins with a formula gets a character that nobody sees.
    """

    def run(self, root: Element) -> None:
        """Change the headers in place."""
        for table in root.iter("table"):
            head = table.find("thead")
            if head is not None and not _text(head):
                table.remove(head)
        for cell in root.iter("th"):
            if not _text(cell):
                cell.tag = "td"
            elif not cell.text:
                cell.text = JOINER


def _text(element: Element) -> str:
    return "".join(element.itertext()).strip()
