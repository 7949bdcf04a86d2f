"""What the check reads: the sources of the site, and the pages built from them."""

import functools
import json
import secrets
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException
from mkdocs.structure.files import File
from selectolax.lexbor import LexborHTMLParser, LexborNode

from verified_docs import layout
from verified_docs.code.snippets import Snippet
from verified_docs.evidence.status import Evidence
from verified_docs.pages import archive, policy
from verified_docs.pages.hooks import EXTENSION

SHORT = 70


class Weight(IntEnum):
    """How much a finding weighs: RECORD is a warning that publishing refuses."""

    FAULT = 0
    RECORD = 1
    WARNING = 2


@dataclass(frozen=True, order=True)
class Finding:
    """What is wrong, and where; the line is 1 where it is not cheaply known."""

    path: str
    line: int
    reason: str
    weight: Weight = Weight.FAULT

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


class Missing(Exception):
    """Something without which nothing can be checked; the message says what to do."""


def short(text: str) -> str:
    """The text on one line, quoted, cut where it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= SHORT else line[: SHORT - 1] + "…")


@dataclass(frozen=True)
class Source:
    """The file of a page and its text."""

    path: str
    text: str

    def line_of(self, text: str) -> int:
        """The first line that has the first line of the text, else 1."""
        first = text.strip().partition("\n")[0][:60]
        lines = enumerate(self.text.split("\n"), 1)
        return next((number for number, line in lines if first in line), 1)


@dataclass
class Page:
    """A built page, as a browser reads it: Lexbor parses, mistakes and all.

    Findings name its `path`: that of its source, or its own where it has none, because
    the theme made it, such as 404.html.
    """

    file: Path
    path: str
    source: Source | None
    root: LexborHTMLParser = field(repr=False)

    @functools.cached_property
    def article(self) -> LexborNode | None:
        """The author's part of the page: what is around it comes from the theme."""
        return self.root.css_first("article")

    def fault(
        self, reason: str, text: str = "", weight: Weight = Weight.FAULT
    ) -> Finding:
        """A finding of this page, at the line of its source with the text."""
        line = self.source.line_of(text) if self.source and text else 1
        return Finding(self.path, line, reason, weight)


class Site:
    """The sources under `root`, and the site that they make now, in `made`.

    Raises Missing where they make none.
    """

    def __init__(self, root: Path, made: Path) -> None:
        self.root = root
        self.made = made
        self.mark = secrets.token_hex()
        self.config = build(root, made, self.mark)
        self.docs = Path(self.config.docs_dir)
        self.sources = {
            self.target(path): Source(self.relative(path), read(path))
            for suffix in ("md", "ipynb")
            for path in sorted(self.docs.rglob(f"*.{suffix}"))
        }
        self.pages = []
        for path in sorted(made.rglob("*.html")):
            source = self.sources.get(path)
            name = source.path if source else f"site/{path.relative_to(made)}"
            self.pages.append(Page(path, name, source, LexborHTMLParser(read(path))))

    def target(self, path: Path) -> Path:
        """The HTML file that MkDocs makes of a page of `docs`."""
        name = path.relative_to(self.docs).with_suffix(".md").as_posix()
        urls = self.config.use_directory_urls
        return self.made / File(name, str(self.docs), "", urls).dest_uri

    def stamp(self, node: LexborNode) -> tuple[str, str] | None:
        """What the machinery made a node from: its kind, and the text or options."""
        made = node.attributes.get("data-made") or ""
        if self.mark not in made:
            return None
        _, kind, text, *options = json.loads(made)
        return kind, text or "".join(options[0].values() if options else ())

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the repository knows of its snippets: what the pages were built of."""
        options = self.config.mdx_configs[EXTENSION]
        return options.get("evidence") or Evidence(self.root, options.get("gpu", ""))

    @functools.cached_property
    def snippets(self) -> dict[str, Snippet]:
        """Every snippet by its name. Raises SnippetError."""
        names = layout.names(self.root)
        return {name: self.evidence.status(name).snippet for name in names}

    @functools.cached_property
    def prefix(self) -> str:
        """The path below which the site is served."""
        return urlsplit(self.config.site_url or "").path.rstrip("/") + "/"

    def relative(self, path: Path) -> str:
        """The path as findings print it: relative to the root."""
        return path.relative_to(self.root).as_posix()


def build(root: Path, folder: Path, mark: str) -> MkDocsConfig:
    """Build the site into a folder, whatever the machinery made marked.

    Returns its configuration. Raises Missing where that cannot be done.
    """
    try:
        path = str(root / "mkdocs.yml")
        config = load_config(path, strict=True, site_dir=str(folder))
        config.mdx_configs.setdefault(EXTENSION, {})["mark"] = mark
        mkdocs_build(config)
    except (MkDocsException, ValueError) as error:
        why = error.__context__ or error  # Of a page MkDocs itself only says "aborted".
        raise Missing(f"the site cannot be built: {why}") from None
    policy.apply(folder)
    archive.write(folder, root)
    return config


def read(path: Path) -> str:
    """The text of a file, as well as it can be read."""
    return path.read_text(encoding="utf-8", errors="replace")
