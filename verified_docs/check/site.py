"""What the check reads: the sources of the site, and the pages built from them."""

import bisect
import functools
import html
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from verified_docs import layout
from verified_docs.check.dom import Node, parse
from verified_docs.code import snippets
from verified_docs.evidence import records
from verified_docs.evidence.status import Evidence
from verified_docs.pages import sources
from verified_docs.pages.sources import SourceError

EXTENSION = "verified_docs.pages.markdown"


GAP = "\N{OBJECT REPLACEMENT CHARACTER}"
# What stands in a page and not in the text of its source.
GENERATED = ("code", "pre", "svg", "math", ".katex", ".snippet", ".facts", ".plot")
LEAD = 12  # letters that tell a place in the source


class Weight(IntEnum):
    """How much a finding weighs: RECORD is a warning that publishing refuses."""

    FAULT = 0
    RECORD = 1
    WARNING = 2


@dataclass(frozen=True, order=True)
class Finding:
    """What is wrong, and where."""

    path: str
    line: int
    reason: str
    weight: Weight = Weight.FAULT

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


class Missing(Exception):
    """Something without which nothing can be checked; the message says what to do."""


def squeeze(text: str) -> str:
    """Letters and digits only: what is left of a text whatever its markup."""
    return "".join(filter(str.isalnum, text)).casefold()


class Source:
    """A text file of the repository, searched for what a built page shows."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path.relative_to(root).as_posix()
        try:
            if path.suffix == ".ipynb":
                sources.notebook(path)
            self.text = sources.read(path)
        except SourceError as error:
            raise Missing(str(error).replace(str(path), self.path, 1)) from None

    @functools.cached_property
    def plain(self) -> str:
        """The text without entities and, in a notebook, without JSON escapes."""
        text = self.text
        if self.path.endswith(".ipynb"):
            # Line by line, so that a position still tells the line of the file.
            text = "\n".join(map(unescape_json, text.split("\n")))
        return html.unescape(text)

    @functools.cached_property
    def squeezed(self) -> tuple[str, list[int]]:
        """Letters and digits of `plain`, and the line of each."""
        letters: list[str] = []
        lines: list[int] = []
        for number, line in enumerate(self.plain.split("\n"), 1):
            kept = squeeze(line)
            letters.append(kept)
            lines.extend([number] * len(kept))
        return "".join(letters), lines

    def line_of(self, *texts: str, skip: int = 0, start: int = 1) -> int | None:
        """The first line with one of these texts, exactly or by its letters.

        Lines before `start` count only if there is none after it. As many places as
        `skip` says are passed over, where there are more.
        """
        letters, lines = self.squeezed
        for line in dict.fromkeys((start, 1)):
            begin = len("\n".join(self.plain.split("\n")[: line - 1]))
            for text in texts:
                first = next((part for part in text.split("\n") if part.strip()), "")
                for candidate in (text, first, first.strip()):
                    at = nth(self.plain, candidate, skip, begin)
                    if at >= 0:
                        return self.plain.count("\n", 0, at) + 1
            begin = bisect.bisect_left(lines, line)
            for text in texts:
                wanted = squeeze(text)
                for length in (len(wanted), 60, 30):
                    at = nth(letters, wanted[:length], skip, begin)
                    if at >= 0:
                        return lines[at]
        return None

    def line_after(self, before: str, what: str, start: int = 1) -> int | None:
        """The line of a text by the letters that come before it, from `start` on."""
        letters, lines = self.squeezed
        wanted = squeeze(what)[:60]
        lead = squeeze(before.rpartition(GAP)[2])
        begin = bisect.bisect_left(lines, start)
        for length in (60, 30, LEAD):
            found = lead[-length:] + wanted if lead and wanted else ""
            at = nth(letters, found, 0, begin)
            at = at if at >= 0 else nth(letters, found, 0)
            if at >= 0:
                return lines[at + len(lead[-length:])]
        return self.line_of(what, start=start)


def nth(text: str, wanted: str, skip: int, begin: int = 0) -> int:
    """Where a text occurs after `skip` earlier places, or the last one; else -1."""
    at = text.find(wanted, begin) if wanted else -1
    while at >= 0 and skip:
        further = text.find(wanted, at + 1)
        if further < 0:
            break
        at, skip = further, skip - 1
    return at


def unescape_json(line: str) -> str:
    """The text of a line of a notebook's JSON when it is a string, else the line."""
    try:
        value = json.loads(line.strip().removesuffix(","))
    except ValueError:
        return line
    return value.removesuffix("\n").replace("\n", " ") if type(value) is str else line


@dataclass
class Block:
    """A run of text without a block-level element inside, and its first element."""

    node: Node
    text: str


@dataclass
class Page:
    """A built page. `source` is None for the theme's own, such as 404.html.

    `drawings` are the SVG files of the site, by the letters of their titles.
    """

    file: Path
    path: str
    source: Source | None
    root: Node = field(repr=False)
    drawings: dict[str, Source] = field(default_factory=dict, repr=False)
    told: Counter[tuple[str, ...]] = field(default_factory=Counter, repr=False)

    @functools.cached_property
    def nodes(self) -> list[Node]:
        """Every node of the page."""
        return list(self.root.walk())

    @functools.cached_property
    def article(self) -> Node:
        """The author's part of the page: what is around it comes from the theme."""
        for node in self.nodes:
            if node.tag == "article" or node.attrs.get("role") == "main":
                return node
        return self.root

    @functools.cached_property
    def ids(self) -> dict[str, list[Node]]:
        """Nodes by id (and by name, for `<a name>`)."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            name = node.attrs.get("id")
            if not name and node.tag == "a":
                name = node.attrs.get("name")
            if name:
                found.setdefault(name, []).append(node)
        return found

    def fault(
        self, node: Node, reason: str, *texts: str, weight: Weight = Weight.FAULT
    ) -> Finding:
        """A finding at the source line with one of the texts, else at the HTML's.

        The texts are looked for after what the page says before the node; the same
        fault again is found where they occur again.
        """
        source, start = self.origin(node), self.start(node)
        key = (reason, str(start), *texts)
        skip = self.told[key]
        self.told[key] += 1
        line = source.line_of(*texts, skip=skip, start=start) if source else None
        return self.at(line, node, reason, weight)

    def fault_in(self, block: "Block", match: re.Match[str], reason: str) -> Finding:
        """A finding at the source line of a match in a block's text."""
        line = None
        if source := self.origin(block.node):
            before = block.text[: match.start()]
            line = source.line_after(before, match[0], self.start(block.node))
        return self.at(line, block.node, reason)

    def at(
        self,
        line: int | None,
        node: Node,
        reason: str,
        weight: Weight = Weight.FAULT,
    ) -> Finding:
        """A finding at a line of the source, or where the source does not have it."""
        source = self.origin(node)
        if source is not self.source:
            line = line or 1
        if source and line:
            return Finding(source.path, line, reason, weight)
        return Finding(self.path, node.line, reason, weight)

    def origin(self, node: Node) -> Source | None:
        """The file that the node is of: the page's own, or that of a diagram."""
        for frame in node.ancestors():
            if "diagram" in frame.classes:
                title = next((squeeze(n.text()) for n in frame.find("title")), "")
                return self.drawings.get(title, self.source)
        return self.source

    def start(self, node: Node) -> int:
        """The line of the node's file from which on it may stand."""
        return self.leads.get(id(node), 1) if self.origin(node) is self.source else 1

    @functools.cached_property
    def leads(self) -> dict[int, int]:
        """For each node of the article by its id(): the line of the text before it.

        It is that of the last text which the source has once and in this order.
        """
        found: dict[int, int] = {}
        if self.source is None:
            return found
        letters, lines = self.source.squeezed
        line = 1
        stack: list[Node | str] = [self.article]
        while stack:
            item = stack.pop()
            if isinstance(item, Node) and item.within(*GENERATED):
                found.update((id(node), line) for node in item.walk())
            elif isinstance(item, Node):
                found[id(item)] = line
                stack.extend(reversed(item.children))
            elif len(text := squeeze(item)) >= LEAD and letters.count(text) == 1:
                line = max(line, lines[letters.index(text) + len(text) - 1])
        return found


class Site:
    """The sources under `root` and the site built from them in `built`."""

    def __init__(self, root: Path, built: Path) -> None:
        self.root = root
        self.built = built
        if not (root / "mkdocs.yml").is_file():
            raise Missing(f"{root / 'mkdocs.yml'}: there is no such file")
        self.config_source = Source(root / "mkdocs.yml", root)
        try:
            loaded = yaml.load(self.config_source.text, Loader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            what = getattr(error, "problem", None) or "not YAML"
            raise Missing(f"mkdocs.yml:{line}: {what}") from None
        if not isinstance(loaded, dict):
            raise Missing("mkdocs.yml:1: it is no mapping of options")
        self.config: dict[str, Any] = loaded
        self.docs = root / str(self.config.get("docs_dir", "docs"))
        if not (built / "index.html").is_file():
            raise Missing(
                f"{self.relative(built)}: no built site; run `make site` first"
            )
        self.sources = {
            path.relative_to(self.docs).as_posix(): Source(path, root)
            for suffix in (".md", ".ipynb")
            for path in sorted(self.docs.rglob(f"*{suffix}"))
            if ".ipynb_checkpoints" not in path.parts
        }
        built_from = {self.target(name): name for name in self.sources}
        self.pages = [
            Page(
                path,
                self.relative(path),
                self.sources.get(built_from.get(path, "")),
                parse(path.read_text(encoding="utf-8")),
                self.drawings,
            )
            for path in sorted(built.rglob("*.html"))
            if not (self.docs / path.relative_to(built)).is_file()
        ]

    @functools.cached_property
    def drawings(self) -> dict[str, Source]:
        """The SVG files below docs, by the letters of their titles."""
        found = {}
        for path in sorted(self.docs.rglob("*.svg")):
            source = Source(path, self.root)
            if title := re.search(r"<title[^>]*>(.*?)</title>", source.text, re.DOTALL):
                found[squeeze(html.unescape(title[1]))] = source
        return found

    @functools.cached_property
    def prefix(self) -> str:
        """The path below which the site is served: that for which it was built."""
        home = next(p for p in self.pages if p.file == self.built / "index.html")
        links = (n for n in home.nodes if n.attrs.get("rel") == "canonical")
        address = next((n.attrs.get("href", "") for n in links), "")
        return urlsplit(address).path or "/"

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """The options of the Markdown extension."""
        for entry in self.config.get("markdown_extensions") or []:
            if isinstance(entry, dict) and EXTENSION in entry:
                return dict(entry[EXTENSION] or {})
        return {}

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the repository knows of its snippets."""
        return Evidence(self.root, str(self.options.get("gpu") or ""))

    @functools.cached_property
    def readable(self) -> bool:
        """Whether every record can be read."""
        try:
            evidence = self.evidence
            _ = evidence.verification, evidence.benchmarks, evidence.interpreter
            _ = evidence.quoted
        except records.RecordError:
            return False
        return True

    @functools.cached_property
    def snippets(self) -> dict[str, snippets.Snippet | snippets.SnippetError]:
        """Every snippet by name, or what is wrong with it."""
        found: dict[str, snippets.Snippet | snippets.SnippetError] = {}
        for name in layout.names(self.root):
            try:
                found[name] = snippets.load(self.root, name)
            except snippets.SnippetError as error:
                found[name] = error
        return found

    def relative(self, path: Path) -> str:
        """The path as findings print it: relative to the root where it is below."""
        return (
            path.relative_to(self.root) if path.is_relative_to(self.root) else path
        ).as_posix()

    def target(self, name: str) -> Path:
        """The HTML file that MkDocs makes of a page of `docs`."""
        path = Path(name).with_suffix("")
        if path.name == "README":
            path = path.with_name("index")
        if self.config.get("use_directory_urls", True) and path.name != "index":
            path = path / "index"
        return self.built / path.with_suffix(".html")

    def nav(self) -> Iterator[str]:
        """The pages that the navigation names."""
        stack = [self.config.get("nav") or []]
        while stack:
            entry = stack.pop()
            if isinstance(entry, dict):
                stack.extend(entry.values())
            elif isinstance(entry, list):
                stack.extend(entry)
            elif str(entry).endswith((".md", ".ipynb")):
                yield str(entry)


class Loader(yaml.SafeLoader):
    """YAML as MkDocs writes it: tags other than !ENV mean nothing to the check."""


def environment(loader: Loader, node: yaml.Node) -> Any:
    """`!ENV NAME`, or `!ENV [NAME, ..., default]`."""
    if not isinstance(node, yaml.SequenceNode):
        return os.environ.get(str(node.value))
    *names, default = loader.construct_sequence(node)
    return next((os.environ[name] for name in names if name in os.environ), default)


Loader.add_constructor("!ENV", environment)
Loader.add_multi_constructor("", lambda loader, suffix, node: None)
