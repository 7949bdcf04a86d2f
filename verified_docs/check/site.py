"""What the check reads: the sources of the site, and the pages built from them."""

import functools
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown import Markdown
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import ConfigurationError
from mkdocs.structure.files import File
from mkdocs.utils.meta import get_data

from verified_docs import layout
from verified_docs.check.dom import Node, parse
from verified_docs.code import snippets
from verified_docs.code.sections import SnippetError
from verified_docs.evidence.records import RecordError
from verified_docs.evidence.status import Evidence
from verified_docs.pages import notebook, sources
from verified_docs.pages.markdown import VerifiedDocs
from verified_docs.pages.sources import SourceError

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
    """The file of a page: its text, and what MkDocs takes off its top."""

    file: Path
    path: str
    text: str
    markdown: str
    meta: dict[str, Any]

    def line_of(self, text: str) -> int:
        """The first line that has the first line of the text, else 1."""
        first = text.strip().partition("\n")[0][:60]
        lines = enumerate(self.text.split("\n"), 1)
        return next((number for number, line in lines if first in line), 1)


@dataclass
class Page:
    """A built page. `source` is None for the theme's own, such as 404.html."""

    file: Path
    path: str
    source: Source | None
    root: Node = field(repr=False)

    @functools.cached_property
    def article(self) -> Node | None:
        """The author's part of the page: what is around it comes from the theme."""
        return next(self.root.find("article"), None)

    @functools.cached_property
    def nodes(self) -> list[Node]:
        """Every node of the page."""
        return list(self.root.walk())

    @functools.cached_property
    def ids(self) -> set[str]:
        """Every id of the page."""
        return {node.attrs["id"] for node in self.nodes if "id" in node.attrs}

    def fault(
        self, reason: str, text: str = "", weight: Weight = Weight.FAULT
    ) -> Finding:
        """A finding of this page, at the line of its source with the text."""
        if self.source is None:
            return Finding(self.path, 1, reason, weight)
        line = self.source.line_of(text) if text else 1
        return Finding(self.source.path, line, reason, weight)


class Site:
    """The sources under `root` and the site built from them in `built`.

    Raises Missing where they cannot be read.
    """

    def __init__(self, root: Path, built: Path) -> None:
        self.root = root
        self.built = built
        self.config = configuration(root)
        self.docs = Path(self.config.docs_dir)
        if not (built / "index.html").is_file():
            raise Missing(
                f"{self.relative(built)}: no built site; run `make site` first"
            )
        self.sources = {
            self.target(path): self.source(path)
            for suffix in ("md", "ipynb")
            for path in sorted(self.docs.rglob(f"*.{suffix}"))
            if ".ipynb_checkpoints" not in path.parts
        }
        self.pages = [
            Page(path, self.relative(path), self.sources.get(path), parse(read(path)))
            for path in sorted(built.rglob("*.html"))
        ]

    def source(self, path: Path) -> Source:
        """A file of a page, read. Raises Missing."""
        try:
            text = page = sources.read(path)
            if path.suffix == ".ipynb":
                page = notebook.compose(path, self.root)
        except SourceError as error:
            raise Missing(str(error).replace(str(path), self.relative(path))) from None
        except ValueError:
            page = ""  # A cell is not its section: the page in `built` is another one.
        return Source(path, self.relative(path), text, *get_data(page))

    def target(self, path: Path) -> Path:
        """The HTML file that MkDocs makes of a page of `docs`."""
        name = path.relative_to(self.docs).with_suffix(".md").as_posix()
        urls = self.config.use_directory_urls
        return self.built / File(name, str(self.docs), "", urls).dest_uri

    @functools.cached_property
    def markdown(self) -> Markdown:
        """The Markdown that the pages are made with."""
        return Markdown(
            extensions=self.config.markdown_extensions,
            extension_configs=self.config.mdx_configs,
        )

    @functools.cached_property
    def extension(self) -> VerifiedDocs:
        """What makes everything on the pages that an author may not type. Raises
        Missing where the configuration leaves it out."""
        for extension in self.markdown.registeredExtensions:
            if isinstance(extension, VerifiedDocs):
                return extension
        raise Missing(
            "mkdocs.yml: verified_docs.pages.markdown is not among its extensions"
        )

    @property
    def evidence(self) -> Evidence:
        """What the repository knows of its snippets."""
        return self.extension.site.evidence

    @functools.cached_property
    def readable(self) -> bool:
        """Whether every record can be read."""
        try:
            evidence = self.evidence
            _ = evidence.verification, evidence.benchmarks
            _ = evidence.quoted
        except RecordError:
            return False
        return True

    @functools.cached_property
    def snippets(self) -> dict[str, snippets.Snippet | SnippetError]:
        """Every snippet by name, or what is wrong with it."""
        found: dict[str, snippets.Snippet | SnippetError] = {}
        for name in layout.names(self.root):
            try:
                found[name] = snippets.load(self.root, name)
            except SnippetError as error:
                found[name] = error
        return found

    @functools.cached_property
    def prefix(self) -> str:
        """The path below which the site is served."""
        return urlsplit(self.config.site_url or "").path.rstrip("/") + "/"

    def relative(self, path: Path) -> str:
        """The path as findings print it: relative to the root where it is below."""
        return (
            path.relative_to(self.root) if path.is_relative_to(self.root) else path
        ).as_posix()


def configuration(root: Path) -> MkDocsConfig:
    """What MkDocs itself makes of mkdocs.yml. Raises Missing."""
    path = root / "mkdocs.yml"
    if not path.is_file():
        raise Missing(f"{path}: there is no such file")
    try:
        return load_config(str(path))
    except ConfigurationError as error:
        raise Missing(f"mkdocs.yml: {error}") from None


def read(path: Path) -> str:
    """The text of a file of the built site."""
    return path.read_text(encoding="utf-8", errors="replace")
