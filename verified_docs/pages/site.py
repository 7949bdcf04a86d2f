"""What the Markdown extension is told about the site, and the page that it reads."""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from markdown import Markdown
from markdown.util import Processor

from verified_docs import layout
from verified_docs.evidence.status import Evidence, Status
from verified_docs.pages import figures
from verified_docs.pages.claims import Claims
from verified_docs.pages.highlight import Identifiers
from verified_docs.pages.ladder import Navigation
from verified_docs.pages.sources import headings
from verified_docs.pages.style import Style


@dataclass
class Site:
    """The evidence, and the conventions of the pages."""

    evidence: Evidence
    navigation: Navigation
    published: str = ""  # the commit whose run publishes the site, if one does
    identifiers: Identifiers = frozenset()  # names in Python code, each with its class
    repository: str = ""  # where that is public
    style: Style = field(default_factory=Style)
    mark: str = ""  # the word of the check, see made.py
    everyday: Collection[str] = ()  # words of the glossaries that only authors link
    base: str = "/"  # the way from the page at hand to the root of the site
    badged: set[str] = field(default_factory=set)  # snippets whose badge the page has
    claims: Claims = field(default_factory=dict)  # those of the page

    @functools.cached_property
    def works(self) -> Mapping[str, str]:
        """The anchors of the works that the bibliography names."""
        return headings(self.navigation.docs / f"{figures.BIBLIOGRAPHY}.md")

    def statuses(self) -> list[Status]:
        """The state of every snippet."""
        names = layout.names(self.evidence.root)
        return [self.evidence.status(name) for name in names]


class OfSite(Processor):
    """A step on the way from Markdown to HTML that knows the site."""

    def __init__(self, md: Markdown, site: Site) -> None:
        super().__init__(md)
        self.site = site


def source(md: Markdown) -> str:
    """The path of the page below docs/, or "" where the builder is not MkDocs."""
    file = _file(md)
    return str(file.src_uri) if file else ""


def base(md: Markdown) -> str:
    """The way from the page to the root of the site, if the builder is MkDocs."""
    file = _file(md)
    return ("../" * file.url.removeprefix("./").count("/") or "./") if file else "/"


def _file(md: Markdown) -> Any:
    """MkDocs' own record of the page at hand."""
    if "relpath" not in md.treeprocessors:
        return None
    return md.treeprocessors["relpath"].file  # type: ignore[attr-defined]
