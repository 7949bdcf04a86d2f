"""What the Markdown extension is told about the site, and the page that it reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from verified_docs.evidence.status import Evidence


@dataclass
class Site:
    """The evidence, and the conventions of the pages.

    `published` is the commit whose run publishes the site, if one does.
    `identifiers` maps a name in Python code to a class of its own, such as m_i to t-m.
    `base` is the way from the page at hand to the root of the site.
    """

    evidence: Evidence
    published: str = ""
    identifiers: Mapping[str, str] = field(default_factory=dict)
    base: str = "/"
    count: int = 0

    def unique(self, kind: str) -> str:
        """A prefix for ids that occurs once on the page."""
        self.count += 1
        return f"{kind}-{self.count}-"
