"""What the Markdown extension is told about the site."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from verified_docs.evidence import Evidence


@dataclass
class Site:
    """The evidence, and the conventions of the pages.

    `languages` are those of fences that hold text of their own. `identifiers` maps a
    name in Python code to a class of its own, such as m_i to t-m.
    """

    evidence: Evidence
    languages: list[str] = field(default_factory=list)
    identifiers: Mapping[str, str] = field(default_factory=dict)
    count: int = 0

    def unique(self, kind: str) -> str:
        """A prefix for ids that occurs once on the page."""
        self.count += 1
        return f"{kind}-{self.count}-"
