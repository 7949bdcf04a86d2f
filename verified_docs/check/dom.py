"""A small tree of a built page: tags, attributes, text and the line of each tag."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
KATEX = re.compile(r'<span class="katex-html"[^>]*>')
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")


class Node:
    """One element. Children are nodes and text in document order."""

    __slots__ = ("attrs", "children", "line", "parent", "tag")

    def __init__(
        self, tag: str, attrs: dict[str, str], parent: "Node | None", line: int
    ) -> None:
        self.tag = tag
        self.attrs = attrs
        self.parent = parent
        self.line = line
        self.children: list[Node | str] = []

    @property
    def classes(self) -> list[str]:
        """The names in the class attribute."""
        return self.attrs.get("class", "").split()

    def written(self) -> tuple[str, str]:
        """The start tag as raw HTML may have it, with either quote."""
        double = "".join(f' {name}="{value}"' for name, value in self.attrs.items())
        single = "".join(f" {name}='{value}'" for name, value in self.attrs.items())
        return f"<{self.tag}{double}>", f"<{self.tag}{single}>"

    def walk(self) -> Iterator["Node"]:
        """This node and every node below it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(c for c in reversed(node.children) if isinstance(c, Node))

    def find(self, *tags: str) -> Iterator["Node"]:
        """Every node below this one (itself included) with one of these tags."""
        return (node for node in self.walk() if node.tag in tags)

    def ancestors(self) -> Iterator["Node"]:
        """This node, its parent, and so on up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def within(self, *names: str) -> bool:
        """Is this node, or one around it, of such a tag or `.class`?"""
        return any(
            node.tag in names or any(f".{name}" in names for name in node.classes)
            for node in self.ancestors()
        )

    def texts(self, *silent: str) -> Iterator[tuple["Node", str]]:
        """Each piece of text with its element, outside such tags and `.classes`."""
        tags = {name for name in silent if not name.startswith(".")}
        classes = {name[1:] for name in silent if name.startswith(".")}
        stack: list[tuple[Node, Node | str]] = [(self, self)]
        while stack:
            parent, item = stack.pop()
            if isinstance(item, str):
                yield parent, item
            elif item.tag not in tags and classes.isdisjoint(item.classes):
                stack.extend((item, child) for child in reversed(item.children))

    def text(self) -> str:
        """What `textContent` is in a browser: the text the clipboard gets."""
        return "".join(text for _, text in self.texts())


class Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.top = Node("#document", {}, None, 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values: dict[str, str] = {}
        for name, value in attrs:
            values.setdefault(name, value or "")  # A browser, too, keeps the first.
        node = Node(tag, values, self.top, self.getpos()[0])
        self.top.children.append(node)
        if not VOID.fullmatch(tag):
            self.top = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        # In HTML the slash closes nothing; inside an SVG or a formula it does.
        if not VOID.fullmatch(tag) and self.top.within("svg", "math"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        for node in self.top.ancestors():
            if node.tag == tag and node.parent is not None:
                self.top = node.parent
                return

    def handle_data(self, data: str) -> None:
        if self.top.tag == "pre" and not self.top.children:
            data = data.removeprefix("\n")  # a browser drops this newline
        if data:
            self.top.children.append(data)


def parse(html: str) -> Node:
    """The tree of a page. KaTeX's visual half is left out: its MathML says the same."""
    builder = Builder()
    builder.feed(without_katex(html))
    builder.close()
    return builder.root


def without_katex(html: str) -> str:
    """Cut `<span class="katex-html">`, which is most of a page of formulas.

    A span that holds anything but KaTeX's own tags stays, so that nothing hides in it.
    """
    parts: list[str] = []
    done = 0
    for start in KATEX.finditer(html):
        if start.start() < done:
            continue
        depth = 1
        for tag in TAG.finditer(html, start.end()):
            if tag[2] not in ("span", "svg", "path", "line"):
                break
            if tag[2] == "span":
                depth += -1 if tag[1] else 1
            if depth == 0:
                parts.append(html[done : start.start()])
                done = tag.end() + 1
                parts.append("\n" * html.count("\n", start.start(), done))
                break
    return "".join(parts) + html[done:]
