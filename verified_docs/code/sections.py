"""The marked parts of a snippet file, and what a page shows of them.

Comments mark the parts:

    # --8<-- [start:kernel]   ...   # --8<-- [end:kernel]   a section
    # --8<-- [line:rescale]                                 names the next statement

Sections may nest but not cross. What a page shows of a section is its lines without
marker lines, without blank lines at either end, dedented, and ending in one newline.
Outside all sections there is only the docstring, imports and constants, whose values
call modules at most, and no name is bound twice: what runs is what is shown.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from verified_docs import languages, layout

COMMENT = languages.LANGUAGES[".py"].comment
NAME = "[a-z][a-z0-9_]*"
MARKER = re.compile(rf"{COMMENT} --8<-- \[(start|end|line):({NAME})\]")
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")
WRONG = "Wrong on purpose"
BLANK = "\t\f"
IMPORTED = {"torch", "triton", layout.SNIPPETS, *sys.stdlib_module_names}
# What turns the order of text, joins, hangs on another character, leaves no mark, or
# begins a line where Python sees none.
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Mn", "Zl", "Zp")


class SnippetError(ValueError):
    """A snippet that cannot be published, with the file, the line and the reason."""

    def __init__(self, path: Path | str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")


@dataclass(frozen=True)
class Section:
    """A part of a snippet as a page shows it."""

    name: str  # "" for the whole file
    text: str
    first: int  # of its lines in the file, counted from 1
    last: int
    numbers: list[int]  # in the file, of each line of the text
    marks: dict[str, range] = field(default_factory=dict)  # lines of the text, from 0
    cut: str = ""  # the function of which it shows only a part


@dataclass(frozen=True)
class Marker:
    """One marker comment: its line, "start", "end" or "line", and a name."""

    line: int
    kind: str
    name: str


class Refused(Exception):
    """A line that cannot be published, and the reason."""


def parse(text: str, name: str) -> tuple[Section, dict[str, Section]]:
    """The whole file of that name and its sections. Raises Refused and SyntaxError."""
    lines = text.split("\n")
    tree = ast.parse(text)
    markers = _markers(text)
    spans = _spans(markers)
    _refuse_hidden(tree, spans)
    if (ast.get_docstring(tree) or "").startswith(WRONG) != layout.is_wrong(name):
        reason = f"the docstring of a file wrong_*, and of no other, starts: {WRONG}"
        raise Refused(1, reason)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    _refuse_foreign(nodes, IMPORTED.union(Path(name).stem.split("_")))
    statements = _statements(nodes, lines)
    whole = _show("", (0, len(lines) + 1), lines, markers, statements)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    sections = {}
    for name, span in spans.items():
        shown = _show(name, span, lines, markers, statements)
        sections[name] = replace(shown, cut=_cut(functions, span))
    return whole, sections


def _markers(text: str) -> list[Marker]:
    """Every marker. Refuses what a reader cannot see as it is."""
    found: list[Marker] = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.NAME and not token.string.isascii():
            raise Refused(line, f"{token.string!r} is not in ASCII letters")
        alone = token.type == tokenize.COMMENT and token.line.strip() == token.string
        if alone and (match := MARKER.fullmatch(token.string)):
            found.append(Marker(line, *match.groups()))
            if depth and match[1] != "line":
                reason = f"[{match[1]}:{match[2]}] is in the midst of a statement"
                raise Refused(line, reason)
    for number, shown in enumerate(text.split("\n"), 1):
        for sign in shown:
            if unicodedata.category(sign) in UNSEEN and sign not in BLANK:
                reason = f"the character U+{ord(sign):04X} cannot be seen"
                raise Refused(number, reason)
        if "--8<--" in shown and number not in {marker.line for marker in found}:
            forms = "[start:name], [end:name] or [line:name], a comment on its own line"
            forms += f"; names match {NAME}"
            reason = f"{shown.strip()!r} is no marker; write # --8<-- {forms}"
            raise Refused(number, reason)
    return found


def _refuse_hidden(tree: ast.Module, spans: dict[str, tuple[int, int]]) -> None:
    """Refuse code that runs and that no section shows, or that hides what one shows."""
    bound: dict[str, int] = {}
    for place, node in enumerate(tree.body):
        names = list(dict.fromkeys(_bound(node)))
        if not _shown(node, spans) and not _is_plain(node, place, names):
            reason = "code outside all sections; only constants and imports may be"
            raise Refused(node.lineno, reason)
        for name in names:
            if name == "*":
                raise Refused(node.lineno, "import * binds names that nobody sees")
            if name in bound:
                reason = f"{name} is bound a second time; line {bound[name]} binds it"
                raise Refused(node.lineno, reason)
            bound[name] = node.lineno


def _refuse_foreign(nodes: list[ast.stmt], known: set[str]) -> None:
    """Refuse an import that a reader who copies the file may not have."""
    for node in nodes:
        match node:
            case ast.Import(names):
                modules = [each.name for each in names]
            case ast.ImportFrom(module, _, level):
                modules = ["." * level + (module or "")]
            case _:
                continue
        for module in modules:
            if module.partition(".")[0] not in known:
                allowed = "torch, triton, the standard library, other snippets"
                reason = f"{module} is imported; what may be: {allowed}"
                raise Refused(node.lineno, f"{reason}, and what the file's name names")


def _shown(node: ast.stmt, spans: dict[str, tuple[int, int]]) -> bool:
    """Whether a section holds the whole statement."""
    start, end = _first(node), node.end_lineno or node.lineno
    return any(first < start <= end < last for first, last in spans.values())


def _first(node: ast.stmt) -> int:
    """The first line of a statement: that of its first decorator, if it has one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _is_plain(node: ast.stmt, place: int, names: list[str]) -> bool:
    """Whether a statement may stand outside sections."""
    match node:
        case ast.Expr(ast.Constant(str())):
            return place == 0
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign() | ast.AnnAssign():
            constant = all(map(CONSTANT.fullmatch, names))
            return constant and not any(map(_acts, ast.walk(node)))
    return False


def _acts(part: ast.AST) -> bool:
    """Whether a part of a constant may be more than a value that a module computes."""
    match part:
        case ast.Call(ast.Attribute(ast.Name())):
            return False
        case ast.Attribute() | ast.Subscript():
            return isinstance(part.ctx, ast.Store)
    return isinstance(part, ast.Call | ast.Lambda)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement of the module binds, within an expression too."""
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            yield name
            return  # What stands in it has names of its own.
        case ast.comprehension():
            return  # So has this.
        case ast.Import(names) | ast.ImportFrom(names=names):
            yield from ((a.asname or a.name).partition(".")[0] for a in names)
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _cut(functions: list[ast.FunctionDef], span: tuple[int, int]) -> str:
    """The function of which a section shows some lines and not others."""
    cut = ""
    for node in functions:
        lines = range(_first(node), (node.end_lineno or node.lineno) + 1)
        if 0 < sum(span[0] < line < span[1] for line in lines) < len(lines):
            cut = node.name
    return cut


def _spans(markers: list[Marker]) -> dict[str, tuple[int, int]]:
    """The lines of the markers of each section, in the order of their starts."""
    seen: dict[tuple[str, str], int] = {}
    open_: list[str] = []
    for marker in markers:
        number, kind, name = marker.line, marker.kind, marker.name
        if kind == "end" and open_[-1:] != [name]:
            known = f"; the open one is {open_[-1]!r}" if open_ else ""
            raise Refused(number, f"[end:{name}] ends no open section{known}")
        if (kind, name) in seen:
            reason = f"[{kind}:{name}] stands already at line {seen[kind, name]}"
            raise Refused(number, reason)
        seen[kind, name] = number
        if kind == "start":
            open_.append(name)
        elif kind == "end":
            open_.pop()
    if open_:
        reason = f"section {open_[-1]!r} has no [end:{open_[-1]}] after it"
        raise Refused(seen["start", open_[-1]], reason)
    sections = (name for kind, name in seen if kind == "start")
    return {name: (seen["start", name], seen["end", name]) for name in sections}


def _statements(nodes: list[ast.stmt], lines: list[str]) -> dict[int, int]:
    """The last line of the statement that starts at a line; a header's, if compound."""
    ends = {}
    for node in nodes:
        start = _first(node)
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
    span: tuple[int, int],
    lines: list[str],
    markers: list[Marker],
    statements: dict[int, int],
) -> Section:
    """The lines between the two of `span` as a page shows them."""
    first, last = span[0] + 1, span[1] - 1
    within = {marker.line: marker for marker in markers if first <= marker.line <= last}
    kept: list[int] = []
    joining = True  # Blank lines on both sides of a dropped line count once.
    for number in range(first, last + 1):
        blank = not lines[number - 1].strip()
        if number in within:
            joining = not kept or not lines[kept[-1] - 1].strip()
        elif not (blank and joining):
            joining = False
            kept.append(number)
    while kept and not lines[kept[-1] - 1].strip():
        kept.pop()
    if not kept:
        what = f"section {name!r}" if name else "the file"
        raise Refused(span[0] or 1, f"{what} is empty")
    text = textwrap.dedent("\n".join(lines[number - 1] for number in kept)) + "\n"
    marks: dict[str, range] = {}
    for marker in within.values():
        if marker.kind != "line":
            continue
        code = [n for n in kept if n > marker.line and _is_code(lines[n - 1])]
        if not code:
            raise Refused(marker.line, f"[line:{marker.name}] names no line")
        start, end = code[0], min(statements.get(code[0], code[0]), last)
        places = [n for n, number in enumerate(kept) if start <= number <= end]
        marks[marker.name] = range(places[0], places[-1] + 1)
    return Section(name, text, first, last, kept, marks)
