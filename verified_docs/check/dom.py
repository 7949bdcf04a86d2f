"""A small tree of a page, as a browser reads it: Lexbor parses, mistakes and all."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode


@dataclass(eq=False, slots=True)
class Node:
    """One element. Children are nodes and text in document order."""

    tag: str
    attrs: dict[str, str]
    parent: "Node | None"
    children: "list[Node | str]" = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """The names in the class attribute."""
        return self.attrs.get("class", "").split()

    @property
    def elements(self) -> Iterator["Node"]:
        """The children that are elements."""
        return (child for child in self.children if isinstance(child, Node))

    def walk(self) -> Iterator["Node"]:
        """This node and every node below it, in document order."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += reversed([*node.elements])

    def find(self, *names: str) -> Iterator["Node"]:
        """Every node of such a tag or `.class`, this one included."""
        classes = {name[1:] for name in names if name.startswith(".")}
        for node in self.walk():
            if node.tag in names or (classes and not classes.isdisjoint(node.classes)):
                yield node

    def ancestors(self) -> Iterator["Node"]:
        """This node, its parent, and so on up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def text(self) -> str:
        """What `textContent` is in a browser: the text the clipboard gets."""
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)


def parse(html: str) -> Node:
    """The tree of a whole page. What is neither element nor text has the tag "!"."""
    return _node(LexborHTMLParser(html).root, None)


def _node(element: LexborNode | None, parent: Node | None) -> Node:
    if element is None or not element.is_element_node:
        return Node("!", {}, parent)
    attrs = {name: value or "" for name, value in element.attributes.items()}
    node = Node(element.tag or "", attrs, parent)
    child = element.first_child
    while child is not None:
        text = child.text_content
        node.children.append(_node(child, node) if text is None else text)
        child = child.next
    return node
