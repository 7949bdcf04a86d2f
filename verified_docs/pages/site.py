"""What the Markdown extension is told about the site, and the page that it reads."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures


@dataclass
class Site:
    """The evidence, and the conventions of the pages.

    `published` is the commit whose run publishes the site, if one does.
    `identifiers` maps a name in Python code to a class of its own, such as m_i to t-m.
    `nav` is the navigation as mkdocs.yml has it. `repository` is where the repository
    is public, or "". `base` is the way from the page at hand to the root of the site.
    """

    evidence: Evidence
    published: str = ""
    identifiers: Mapping[str, str] = field(default_factory=dict)
    nav: Sequence[Mapping[str, Any]] = ()
    repository: str = ""
    base: str = "/"
    count: int = 0

    @functools.cached_property
    def works(self) -> Mapping[str, str]:
        """The anchors of the works that the bibliography names."""
        return figures.works(self.evidence.root / "docs")

    def unique(self, kind: str) -> str:
        """A prefix for ids that occurs once on the page."""
        self.count += 1
        return f"{kind}-{self.count}-"
