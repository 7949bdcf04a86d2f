"""A small tree of a page, as a browser reads it: html5lib parses, mistakes and all."""

import re
from collections.abc import Iterator
from typing import Any

import html5lib

# A number that only keeps the ids of a page apart.
COUNTED = re.compile(r"\b(diagram|plot)-\d+-")


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

    def shape(self) -> tuple[Any, ...]:
        """What two nodes share that are the same but for the numbers of their ids."""
        attrs = (
            (key, COUNTED.sub(r"\1-", value))
            for key, value in sorted(self.attrs.items())
            if key != "data-made"
        )
        shapes = (c if isinstance(c, str) else c.shape() for c in self.children)
        return (self.tag, *attrs, *shapes)


def parse(html: str) -> Node:
    """The tree of a whole page. A comment is a node with the tag "!"."""
    return _node(html5lib.parse(html, namespaceHTMLElements=False))


def fragment(html: str) -> Node:
    """The one element that the HTML of a part of a page holds."""
    parsed = html5lib.parseFragment(html, namespaceHTMLElements=False)
    return _node(parsed[0])


def _node(element: Any, parent: Node | None = None) -> Node:
    if not isinstance(element.tag, str):
        return Node("!", {}, parent)
    attrs = {_local(name): value for name, value in element.attrib.items()}
    node = Node(_local(element.tag), attrs, parent)
    if element.text:
        node.children.append(element.text)
    for child in element:
        node.children.append(_node(child, node))
        if child.tail:
            node.children.append(child.tail)
    return node


def _local(name: str) -> str:
    return name.rpartition("}")[2]
