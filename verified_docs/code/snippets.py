"""Snippet files: their sections, their hash, and what differs between two.

A snippet is a UTF-8 Python file, its sections marked as sections.py says. The SHA-256
is of the bytes of the file.
"""

import difflib
import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verified_docs import layout
from verified_docs.code import sections
from verified_docs.code.sections import Section, SnippetError

OTHERS = re.compile(rf"^\s*(from|import) {layout.SNIPPETS}\b", re.MULTILINE)
# A kernel in Gluon, or the import of one.
GLUON = re.compile(rb"^(?:@gluon\.jit|from snippets\.\w+\.gluon_)", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A snippet file. `name` is relative to the folder of snippets, with slashes."""

    name: str
    path: Path
    data: bytes
    whole: Section
    sections: dict[str, Section]

    @functools.cached_property
    def sha256(self) -> str:
        """The hash of the bytes of the file."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def wrong(self) -> bool:
        """Whether the file is wrong on purpose."""
        return layout.is_wrong(self.name)

    @functools.cached_property
    def gpu_only(self) -> bool:
        """Whether nothing but a GPU runs it: Triton's interpreter runs no Gluon."""
        return bool(GLUON.search(self.data))

    def section(self, name: str) -> Section:
        """The section of that name, or the whole file for "". Raises SnippetError."""
        if not name:
            return self.whole
        if name not in self.sections:
            known = ", ".join(self.sections) or "none"
            reason = f"there is no section {name!r}; the sections are: {known}"
            raise SnippetError(self.path, 1, reason)
        return self.sections[name]


def load(root: Path, name: str) -> Snippet:
    """Read and parse a snippet. Raises SnippetError, also where there is none."""
    path = root / layout.snippet_file(name)
    if name not in (known := layout.names(root)):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SnippetError(path, 1, f"there is no such snippet{hint}")
    return parse(name, path.read_bytes(), path)


def arguments(root: Path, name: str) -> list[str]:
    """What Python is given at the root to run a snippet: its path.

    One that imports others runs as a module, so that they are found.
    """
    file = layout.snippet_file(name)
    alone = not OTHERS.search((root / file).read_text("utf-8"))
    return [file] if alone else ["-m", layout.module(name)]


def parse(name: str, data: bytes, path: Path | None = None) -> Snippet:
    """The snippet in these bytes. Raises SnippetError."""
    path = path or Path(name)
    try:
        found = sections.parse(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SnippetError(path, line, "the file is not UTF-8") from None
    except SyntaxError as error:
        line, reason = error.lineno or 1, f"syntax error: {error.msg}"
        raise SnippetError(path, line, reason) from None
    except sections.Refused as error:
        raise SnippetError(path, *error.args) from None
    return Snippet(name, path, data, *found)


def hunks(old: list[str], new: list[str]) -> Iterator[list[tuple[str, str, int]]]:
    """The hunks of a difference: (sign, line, index in `old` if "-", else in `new`).

    Lines that differ in their indentation alone count as equal. The lines around the
    changed ones do not begin or end with empty ones, which would show nothing.
    """
    was, now = ([line.strip() for line in lines] for lines in (old, new))
    matcher = difflib.SequenceMatcher(None, was, now, autojunk=False)
    for group in matcher.get_grouped_opcodes():
        hunk = []
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                hunk += [(" ", new[n], n) for n in range(j, j_end)]
            else:
                hunk += [("-", old[n], n) for n in range(i, i_end)]
                hunk += [("+", new[n], n) for n in range(j, j_end)]
        while hunk[0][:2] == (" ", ""):
            del hunk[0]
        while hunk[-1][:2] == (" ", ""):
            del hunk[-1]
        yield hunk
