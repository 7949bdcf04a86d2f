"""What the extension changes in the tree of a page."""

from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor

JOINER = "\N{WORD JOINER}"
# Of three columns or more, a phone has room for rows of so many letters.
ROW = 80


class Tables(Treeprocessor):
    """Leaves no table header empty: a header cell must have something to say.

    Markdown cannot write a table without a header. One whose cells are all empty is
    dropped; an empty cell beside others becomes an ordinary one. axe-core reads no
    MathML, so a header that begins with a formula gets a character that nobody sees.

    The cells of a table too wide for a phone carry the name of their column, for there
    each row becomes a card (furniture.css).

    Each table is alone in a box: the theme puts it into one that scrolls, after which
    a browser styles everything anew that stands in the same element.
    """

    def run(self, root: Element) -> None:
        """Change the tables in place."""
        for table in root.iter("table"):
            head = table.find("thead")
            if head is not None and not _text(head):
                table.remove(head)
            _label(*table.iter("tr"))
        for cell in root.iter("th"):
            if not _text(cell):
                cell.tag = "td"
            elif not cell.text:
                cell.text = JOINER
        for parent in list(root.iter()):
            for n, table in enumerate(parent):
                if table.tag == "table" and not table.get("class"):
                    parent[n] = box = Element("div")
                    box.append(table)
                    box.tail, table.tail = table.tail, None


def _label(head: Element, *rows: Element) -> None:
    """Name the cells of wide rows, if all columns but the first have names in words.

    The first cell is the heading of a card, and needs a name only if it is a number.
    """
    names = [_text(cell) for cell in head]
    plain = all(names[1:]) and not any(
        "arithmatex" in it.get("class", "") for it in head.iter()
    )
    wide = any(len(_text(row)) > ROW for row in rows)
    if plain and wide and len(names) > 2:
        for row in rows:
            for cell, name in zip(row, names, strict=True):
                if cell is not row[0] or _text(cell).isdigit():
                    cell.set("data-label", name)


def _text(element: Element) -> str:
    return "".join(element.itertext()).strip()
