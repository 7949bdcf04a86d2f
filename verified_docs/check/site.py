"""What the check reads: the sources of the site, and the pages built from them."""

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

from verified_docs import records, snippets
from verified_docs.check.dom import Node, parse
from verified_docs.evidence import Evidence

EXTENSION = "verified_docs.markdown"


GAP = "\N{OBJECT REPLACEMENT CHARACTER}"


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
        self.text = path.read_text(encoding="utf-8")

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

    def line_of(self, *texts: str, skip: int = 0) -> int | None:
        """The first line with one of these texts, exactly or by its letters.

        As many places as `skip` says are passed over, where there are more.
        """
        for text in texts:
            start = next((part for part in text.split("\n") if part.strip()), "")
            for candidate in (text, start, start.strip()):
                at = nth(self.plain, candidate, skip)
                if at >= 0:
                    return self.plain.count("\n", 0, at) + 1
        letters, lines = self.squeezed
        for text in texts:
            wanted = squeeze(text)
            for length in (len(wanted), 60, 30):
                at = nth(letters, wanted[:length], skip)
                if at >= 0:
                    return lines[at]
        return None

    def line_after(self, before: str, what: str) -> int | None:
        """The line of a text by the letters that come before it."""
        letters, lines = self.squeezed
        wanted = squeeze(what)[:60]
        lead = squeeze(before.rpartition(GAP)[2])
        for length in (60, 30, 12):
            at = letters.find(lead[-length:] + wanted) if lead and wanted else -1
            if at >= 0:
                return lines[at + len(lead[-length:])]
        return self.line_of(what)


def nth(text: str, wanted: str, skip: int) -> int:
    """Where a text occurs after `skip` earlier places, or the last one; else -1."""
    at = text.find(wanted) if wanted else -1
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
    """A built page. `source` is None for the theme's own, such as 404.html."""

    file: Path
    path: str
    source: Source | None
    root: Node = field(repr=False)
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

        The same fault again is found where the texts occur again.
        """
        skip = self.told[reason, *texts]
        self.told[reason, *texts] += 1
        line = self.source.line_of(*texts, skip=skip) if self.source else None
        return self.at(line, node, reason, weight)

    def fault_in(self, block: "Block", match: re.Match[str], reason: str) -> Finding:
        """A finding at the source line of a match in a block's text."""
        line = None
        if self.source:
            line = self.source.line_after(block.text[: match.start()], match[0])
        return self.at(line, block.node, reason)

    def at(
        self,
        line: int | None,
        node: Node,
        reason: str,
        weight: Weight = Weight.FAULT,
    ) -> Finding:
        """A finding at a line of the source, or where the source does not have it."""
        if self.source and line:
            return Finding(self.source.path, line, reason, weight)
        return Finding(self.path, node.line, reason, weight)


class Site:
    """The sources under `root` and the site built from them in `built`."""

    def __init__(self, root: Path, built: Path) -> None:
        self.root = root
        self.built = built
        if not (root / "mkdocs.yml").is_file():
            raise Missing(f"{root / 'mkdocs.yml'}: there is no such file")
        self.config_source = Source(root / "mkdocs.yml", root)
        self.config: dict[str, Any] = yaml.load(self.config_source.text, Loader) or {}
        self.docs = root / str(self.config.get("docs_dir", "docs"))
        self.prefix = urlsplit(str(self.config.get("site_url") or "/")).path or "/"
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
            )
            for path in sorted(built.rglob("*.html"))
            if not (self.docs / path.relative_to(built)).is_file()
        ]

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
        folder = self.root / "snippets"
        found: dict[str, snippets.Snippet | snippets.SnippetError] = {}
        for name in snippets.names(folder):
            try:
                found[name] = snippets.load(folder, name)
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
