"""A small tree of a page, as a browser reads it: Lexbor parses, mistakes and all."""

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode


class Node:
    """One element. Children are nodes and text in document order."""

    __slots__ = ("attrs", "children", "parent", "tag")

    def __init__(
        self, tag: str, attrs: dict[str, str], parent: "Node | None" = None
    ) -> None:
        self.tag = tag
        self.attrs = attrs
        self.parent = parent
        self.children: list[Node | str] = []

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
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(c for c in reversed(node.children) if isinstance(c, Node))

    def find(self, *names: str) -> Iterator["Node"]:
        """Every node of such a tag or `.class`, this one included."""
        return (node for node in self.walk() if node.named(*names))

    def named(self, *names: str) -> bool:
        """Is it of such a tag or `.class`?"""
        return self.tag in names or any(f".{name}" in names for name in self.classes)

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
    return _node(LexborHTMLParser(html).root)


def _node(element: LexborNode | None, parent: Node | None = None) -> Node:
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
