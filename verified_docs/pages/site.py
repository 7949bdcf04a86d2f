"""What the Markdown extension is told about the site, and the page that it reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from verified_docs.evidence.status import Evidence


@dataclass
class Site:
    """The evidence, and the conventions of the pages.

    `published` is the commit whose run publishes the site, if one does.
    `identifiers` maps a name in Python code to a class of its own, such as m_i to t-m.
    Of the page at hand, `base` is the way to the root of the site and `lines` are what
    Markdown has of it: no front matter.
    """

    evidence: Evidence
    published: str = ""
    identifiers: Mapping[str, str] = field(default_factory=dict)
    base: str = "/"
    count: int = 0
    lines: Sequence[str] = ()

    def unique(self, kind: str) -> str:
        """A prefix for ids that occurs once on the page."""
        self.count += 1
        return f"{kind}-{self.count}-"

    def at(self, *rows: Collection[str]) -> str:
        """Where the page has the rows, as "docs/part/page.md:12: ", else "".

        Each row is the texts that a line has to hold; the lines follow one another.
        """
        for number in range(len(self.lines) - len(rows) + 1):
            pairs = zip(self.lines[number:], rows, strict=False)
            if all(text in line for line, row in pairs for text in row):
                return self._in_file(number)
        return ""

    def _in_file(self, number: int) -> str:
        """The file whose end is this page, and the line in it."""
        page = _bare(self.lines)
        root = self.evidence.root
        for path in sorted((root / "docs").rglob("*.md")):
            text = path.read_text(encoding="utf-8-sig", errors="replace")
            lines = _bare(text.split("\n"))
            if page and lines[-len(page) :] == page:
                line = len(lines) - len(page) + number + 1
                return f"{path.relative_to(root).as_posix()}:{line}: "
        return ""


def _bare(lines: Sequence[str]) -> list[str]:
    """The lines without blanks, which Markdown changes, and without the last empty."""
    bare = ["".join(line.split()) for line in lines]
    while bare and not bare[-1]:
        bare.pop()
    return bare
