"""The marked parts of a snippet file, and what a page shows of them.

Comments mark the parts:

    # --8<-- [start:kernel]   ...   # --8<-- [end:kernel]   a section
    # --8<-- [line:rescale]                                 names the next statement

Sections may nest but not cross. What a page shows of a section is its lines without
marker lines, without blank lines at either end, dedented, and ending in one newline.
"""

import ast
import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MARKER = re.compile(r"\s*# --8<-- \[(start|end|line):(.*)\]\s*")
NAME = re.compile(r"[a-z][a-z0-9_]*")


class SnippetError(ValueError):
    """A snippet that cannot be published, with the file, the line and the reason."""

    def __init__(self, path: Path | str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Section:
    """A part of a snippet as a page shows it. `name` is "" for the whole file.

    `marks` maps the name of a marked statement to its lines in `text`, counted from 0.
    `first` and `last` are lines of the file, counted from 1.
    """

    name: str
    text: str
    first: int
    last: int
    marks: dict[str, range] = field(default_factory=dict)


@functools.lru_cache(maxsize=256)  # A page shows several sections of one file.
def parse(text: str, path: Path) -> tuple[Section, dict[str, Section]]:
    """The whole file and its sections. Raises SnippetError with the path."""
    lines = text.split("\n")
    statements = _statements(text, path)
    spans = _spans(lines, path)
    whole = _show("", lines, 1, len(lines), statements, path)
    if not whole.text.strip():
        raise SnippetError(path, 1, "the file is empty")
    sections = {}
    for name, (first, last) in spans.items():
        sections[name] = _show(name, lines, first + 1, last - 1, statements, path)
        if not sections[name].text.strip():
            raise SnippetError(path, first, f"section {name!r} is empty")
    for number, kind, _ in _markers(lines, path):
        inside = any(first < number < last for first, last in spans.values())
        if kind == "line" and not inside:
            raise SnippetError(path, number, "a marked line lies outside all sections")
    return whole, sections


def _markers(lines: list[str], path: Path) -> Iterator[tuple[int, str, str]]:
    """Every marker: line, kind, name. Raises SnippetError for what looks like one."""
    for number, line in enumerate(lines, 1):
        if "--8<--" not in line:
            continue
        match = MARKER.fullmatch(line)
        if not match:
            raise SnippetError(
                path,
                number,
                f"{line.strip()!r} is no marker; write # --8<-- [start:name], "
                "[end:name] or [line:name] on a line of its own",
            )
        kind, name = match.groups()
        if not NAME.fullmatch(name):
            raise SnippetError(
                path, number, f"{name!r} is no name; names match {NAME.pattern}"
            )
        yield number, kind, name


def _spans(lines: list[str], path: Path) -> dict[str, tuple[int, int]]:
    """The lines of the markers of each section, in the order of their starts."""
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    named: dict[str, int] = {}
    stack: list[str] = []
    for number, kind, name in _markers(lines, path):
        if kind == "line":
            if name in named:
                reason = f"line {name!r} is already marked at line {named[name]}"
                raise SnippetError(path, number, reason)
            named[name] = number
        elif kind == "start":
            if name in starts:
                reason = f"section {name!r} already starts at line {starts[name]}"
                raise SnippetError(path, number, reason)
            starts[name] = number
            stack.append(name)
        elif not stack or name not in stack:
            reason = f"[end:{name}] ends no open section"
            if stack:
                reason += f"; the open one is {stack[-1]!r}"
            raise SnippetError(path, number, reason)
        elif name != stack[-1]:
            raise SnippetError(
                path,
                number,
                f"section {name!r} ends inside {stack[-1]!r}, which started at line "
                f"{starts[stack[-1]]}: sections may nest but not cross",
            )
        else:
            ends[stack.pop()] = number
    if stack:
        name = stack[-1]
        raise SnippetError(
            path, starts[name], f"section {name!r} has no [end:{name}] after it"
        )
    return {name: (start, ends[name]) for name, start in starts.items()}


def _statements(text: str, path: Path) -> dict[int, int]:
    """The last line of the statement that starts at a line; a header's, if compound."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        reason = f"syntax error: {error.msg}"
        raise SnippetError(path, error.lineno or 1, reason) from None
    except ValueError as error:
        raise SnippetError(path, 1, f"this is no Python: {error}") from None
    lines = text.split("\n")
    ends = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            start = min([node.lineno, *(each.lineno for each in decorators)])
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or start
            while end > start and not _is_code(lines[end - 1]):
                end -= 1
            ends[start] = max(start, end)
    return ends


def _is_code(line: str) -> bool:
    """Whether a line is neither blank nor a comment, as markers are."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _show(
    name: str,
    lines: list[str],
    first: int,
    last: int,
    statements: dict[int, int],
    path: Path,
) -> Section:
    """The lines first..last as a page shows them."""
    kept: list[int] = []
    joining = True  # Blank lines on both sides of a dropped line count once.
    for number in range(first, last + 1):
        blank = not lines[number - 1].strip()
        if MARKER.fullmatch(lines[number - 1]):
            joining = not kept or not lines[kept[-1] - 1].strip()
        elif not (blank and joining):
            joining = False
            kept.append(number)
    while kept and not lines[kept[-1] - 1].strip():
        kept.pop()
    text = textwrap.dedent("\n".join(lines[number - 1] for number in kept)) + "\n"
    marks = {}
    for mark, start in _marked(lines, first, last, path).items():
        end = min(statements.get(start, start), last)
        shown = [n for n, number in enumerate(kept) if start <= number <= end]
        marks[mark] = range(shown[0], shown[-1] + 1)
    return Section(name, text, first, last, marks)


def _marked(lines: list[str], first: int, last: int, path: Path) -> dict[str, int]:
    """The line of code that each [line:name] from first to last names."""
    marks: dict[str, int] = {}
    names: dict[int, str] = {}
    for number in range(first, last + 1):
        match = MARKER.fullmatch(lines[number - 1])
        if not match or match[1] != "line":
            continue
        after = range(number + 1, last + 1)
        code = next((n for n in after if _is_code(lines[n - 1])), None)
        if code is None:
            raise SnippetError(path, number, f"[line:{match[2]}] names no line")
        if code in names:
            reason = f"it names the same line as [line:{names[code]}]"
            raise SnippetError(path, number, reason)
        marks[match[2]], names[code] = code, match[2]
    return marks
