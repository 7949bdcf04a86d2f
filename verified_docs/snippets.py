"""Snippet files: their sections, marked lines, hash, and computed differences.

A snippet is a UTF-8 Python file. Comments mark its parts:

    # --8<-- [start:kernel]   ...   # --8<-- [end:kernel]   a section
    # --8<-- [line:rescale]                                 names the next statement

Sections may nest but not cross. What a page shows of a section is its lines without
marker lines, without blank lines at either end, dedented, and ending in one newline.
Windows line ends are shown as newlines; the SHA-256 is of the bytes of the file.
"""

import ast
import difflib
import hashlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MARKER = re.compile(r"\s*# --8<-- \[(start|end|line):(.*)\]\s*")
NAME = re.compile(r"[a-z][a-z0-9_]*")
INCLUDE = re.compile(r'--8<-- "([^"\s]+)"')


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


@dataclass(frozen=True)
class Snippet:
    """A snippet file. `name` is relative to the folder of snippets, with slashes."""

    name: str
    path: Path
    data: bytes
    whole: Section
    sections: dict[str, Section]

    @property
    def sha256(self) -> str:
        """The hash of the bytes of the file."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def wrong(self) -> bool:
        """Whether the file is wrong on purpose."""
        return PurePosixPath(self.name).name.startswith("wrong_")

    def section(self, name: str) -> Section:
        """The section of that name, or the whole file for "". Raises SnippetError."""
        if not name:
            return self.whole
        if name not in self.sections:
            known = ", ".join(self.sections) or "none"
            raise SnippetError(
                self.path, 1, f"there is no section {name!r}; the sections are: {known}"
            )
        return self.sections[name]


def names(root: Path) -> list[str]:
    """The names of all snippets below the folder, sorted."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "__pycache__" not in path.parts
    )


def load(root: Path, name: str) -> Snippet:
    """Read and parse a snippet. Raises SnippetError, also where there is none."""
    path = root / name
    if name not in names(root):
        near = difflib.get_close_matches(name, names(root), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SnippetError(path, 1, f"there is no such snippet{hint}")
    return parse(name, path.read_bytes(), path)


def load_all(root: Path) -> dict[str, Snippet]:
    """All snippets below the folder, by name. Raises the first SnippetError."""
    return {name: load(root, name) for name in names(root)}


def resolve(root: Path, reference: str) -> tuple[Snippet, Section]:
    """What "softmax/online.py:kernel" or "softmax/online.py" refers to."""
    name, _, section = reference.partition(":")
    snippet = load(root, name)
    return snippet, snippet.section(section)


def parse(name: str, data: bytes, path: Path | None = None) -> Snippet:
    """The snippet in these bytes. Raises SnippetError."""
    path = path or Path(name)
    lines = _decode(data, path)
    statements = _statements(lines, path)
    spans = _spans(lines, path)
    whole = _show("", lines, 1, len(lines), statements, path)
    if not whole.text.strip():
        raise SnippetError(path, 1, "the file is empty")
    sections = {}
    for section, (first, last) in spans.items():
        shown = _show(section, lines, first + 1, last - 1, statements, path)
        if not shown.text.strip():
            raise SnippetError(path, first, f"section {section!r} is empty")
        sections[section] = shown
    marked = {number for number, kind, _ in _markers(lines, path) if kind == "line"}
    for number in sorted(marked):
        if not any(first < number < last for first, last in spans.values()):
            raise SnippetError(path, number, "a marked line lies outside all sections")
    return Snippet(name, path, data, whole, sections)


def difference(old: str, new: str) -> str:
    """The unified difference of two texts: no file names, no line numbers.

    Both texts end in a newline. A line @@ stands where equal lines are left out. The
    result is empty if the texts are equal.
    """
    shown: list[str] = []
    for hunk in hunks(old.split("\n")[:-1], new.split("\n")[:-1]):
        if shown:
            shown.append("@@")
        shown += [sign + line for sign, line, _ in hunk]
    return "".join(line + "\n" for line in shown)


def hunks(old: list[str], new: list[str]) -> Iterator[list[tuple[str, str, int]]]:
    """The hunks of a difference: (sign, line, index in `old` if "-", else in `new`)."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes():
        hunk = []
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                hunk += [(" ", new[n], n) for n in range(j, j_end)]
            else:
                hunk += [("-", old[n], n) for n in range(i, i_end)]
                hunk += [("+", new[n], n) for n in range(j, j_end)]
        yield hunk


def _decode(data: bytes, path: Path) -> list[str]:
    if data.startswith(b"\xef\xbb\xbf"):
        raise SnippetError(path, 1, "the file starts with a byte order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SnippetError(path, line, "the file is not UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


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


def _statements(lines: list[str], path: Path) -> dict[int, int]:
    """The last line of the statement that starts at a line; a header's, if compound."""
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError as error:
        raise SnippetError(
            path, error.lineno or 1, f"syntax error: {error.msg}"
        ) from None
    except ValueError as error:
        raise SnippetError(path, 1, f"this is no Python: {error}") from None
    ends = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno
            ends[node.lineno] = max(node.lineno, end or 0)
    return ends


def _show(
    name: str,
    lines: list[str],
    first: int,
    last: int,
    statements: dict[int, int],
    path: Path,
) -> Section:
    """The lines first..last as a page shows them."""
    kept: list[tuple[int, str]] = []
    marks: dict[str, range] = {}
    joining = True  # Blank lines on both sides of a dropped line count once.
    pending: tuple[int, str] | None = None
    for number in range(first, last + 1):
        line = lines[number - 1]
        match = MARKER.fullmatch(line)
        if match:
            if match[1] == "line":
                if pending:
                    reason = f"names the same line as [line:{pending[1]}]"
                    raise SnippetError(path, number, reason)
                pending = (number, match[2])
            joining = not kept or not kept[-1][1]
            continue
        blank = not line.strip()
        if blank and joining:
            continue
        joining = False
        kept.append((number, "" if blank else line))
        if pending and not blank:
            if number not in statements:
                reason = f"the line after [line:{pending[1]}] starts no statement"
                raise SnippetError(path, number, reason)
            marks[pending[1]] = range(number, min(statements[number], last) + 1)
            pending = None
    if pending:
        raise SnippetError(path, pending[0], f"[line:{pending[1]}] names no line")
    while kept and not kept[-1][1]:
        kept.pop()
    text = textwrap.dedent("\n".join(line for _, line in kept)) + "\n"
    position = {number: index for index, (number, _) in enumerate(kept)}
    placed = {
        mark: range(position[span[0]], position[max(position.keys() & span)] + 1)
        for mark, span in marks.items()
    }
    return Section(name, text, first, last, placed)
