"""Code blocks: each is, byte for byte, what its file or its record says."""

import base64
import binascii
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from verified_docs import layout
from verified_docs.check.dom import Node, parse
from verified_docs.check.prose import short
from verified_docs.check.site import Finding, Page, Site, Source, Weight
from verified_docs.code.snippets import Snippet, SnippetError, difference
from verified_docs.pages import badges

PREFORMATTED = ("pre", "textarea", "xmp", "listing", "plaintext")
MONOSPACE = ("code", "kbd", "samp", "tt")
PUBLISHED = frozenset(
    ("py", "py3", "pycon", "python", "python3", "ipython", "ipython3", "triton")
)
RUNS = re.compile(r"(?:TRITON_INTERPRET=1 )?python snippets/(\S+\.py)")
COMMAND = re.compile(r"^\s*\$ (.*?)(?:\s+#.*)?$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINES = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d+\.)[ \t]+)*(?:`{3,}|~{3,}).*?"
    r"\b(hl_lines|linenums|linenostart)\b",
    re.MULTILINE,
)
# Classes that only the machinery may give: with them a page could fake a record.
RESERVED = (
    r"(?<![\w-])(badge|cell-output|facts|highlight|katex|measured|measurements|no-record"
    r"|plot|snippet|stated|unmeasured|verification|verified-summary)(?![\w-])"
)
FAKED = re.compile(
    rf"""\bclass\s*=\s*(?:"[^"]*?|'[^']*?|){RESERVED}|\{{:?[^}}\n]*?\.{RESERVED}"""
)
CODE = re.compile(
    r"^([ \t>]*)(`{3,}|~{3,}).*?^[ \t>]*\2`*~*[ \t]*$|(`+)(?!`).+?(?<!`)\3(?!`)",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Shown:
    """What the pages show: sections by snippet, "" being the whole file."""

    sections: dict[str, set[str]] = field(default_factory=dict)

    def add(self, snippet: str, section: str) -> None:
        """Note that a page shows a section."""
        self.sections.setdefault(snippet, set()).add(section)


def check(site: Site, shown: Shown) -> Iterator[Finding]:
    """Faults in code blocks; `shown` learns which sections the pages show."""
    commands = listed(site)
    for page in site.pages:
        for node in page.article.walk():
            if node.tag in PREFORMATTED and node.text().strip():
                yield from block(site, page, node, commands, shown)
            elif node.tag in MONOSPACE and not node.within(*PREFORMATTED):
                yield from inline(page, node)
            elif node.tag == "details" and "badge" in node.classes:
                yield from honest(site, page, node)
        yield from lines(page)
    for source in site.sources.values():
        yield from written(source)


def extract(snippet: Snippet, section: str) -> str | None:
    """The text of a section, read here once more, apart from what builds the page."""
    text = snippet.data.decode("utf-8").replace("\r\n", "\n")
    if section:
        start, end = f"# --8<-- [start:{section}]", f"# --8<-- [end:{section}]"
        if text.count(start) != 1 or text.count(end) != 1:
            return None
        text = text.partition(start)[2].rpartition(end)[0].partition("\n")[2]
        text = text.rpartition("\n")[0]
    kept: list[str] = []
    after_marker = True
    for line in text.split("\n"):
        if "--8<--" in line:
            after_marker = True
        elif line.strip():
            kept.append(line)
            after_marker = False
        elif not after_marker or (kept and kept[-1]):
            kept.append("")
            after_marker = False
    return textwrap.dedent("\n".join(kept)).strip("\n") + "\n"


def resolve(site: Site, reference: str) -> tuple[Snippet | None, str, str]:
    """The snippet and text of "softmax/online.py:kernel", or what is wrong with it."""
    name, _, section = reference.partition(":")
    snippet = site.snippets.get(name)
    if snippet is None:
        return None, "", f"there is no snippet {name!r}"
    if isinstance(snippet, SnippetError):
        return None, "", f"{name} cannot be read: {snippet.reason}"
    text = extract(snippet, section)
    if text is None:
        known = ", ".join(snippet.sections) or "none"
        return None, "", f"{name} has no section {section!r}; its sections are: {known}"
    return snippet, text, ""


def block(
    site: Site, page: Page, node: Node, commands: set[str], shown: Shown
) -> Iterator[Finding]:
    """A preformatted text: an include, a difference, an output, or plain."""
    text = node.text()
    frame = next((n for n in node.ancestors() if "snippet" in n.classes), None)
    if node.within(".cell-output") and is_notebook(page):
        return
    if frame is None:
        reason = f"code that is no include of a snippet: {short(text)}"
        yield page.fault(node, reason, text)
    elif "data-snippet" in frame.attrs:
        yield from include(site, page, frame, text, shown)
    elif "data-from" in frame.attrs:
        yield from diff(site, page, frame, text)
    elif "data-output" in frame.attrs:
        yield from output(site, page, frame, text)
    else:
        yield from plain(site, page, frame, text, commands)


def include(
    site: Site, page: Page, frame: Node, text: str, shown: Shown
) -> Iterator[Finding]:
    """The block is its section, and the download is its file."""
    name = frame.attrs["data-snippet"]
    section = frame.attrs.get("data-section", "")
    reference = f"{name}:{section}" if section else name
    where = (f'--8<-- "{reference}"', reference, name)
    snippet, wanted, wrong = resolve(site, reference)
    if snippet is None:
        yield page.fault(frame, wrong, *where)
        return
    shown.add(name, section)
    if text != wanted:
        reason = f"the block is not {reference}: {differs(text, wanted)}"
        yield page.fault(frame, reason, *where)
    downloads = [n for n in frame.find("a") if "download" in n.attrs]
    if len(downloads) != 1:
        reason = f"the block of {reference} has {len(downloads)} download links, not 1"
        yield page.fault(frame, reason, *where)
    for link in downloads:
        if decoded(link.attrs.get("href", "")) != snippet.data:
            reason = f"the download of {name} is not the file, byte for byte"
            yield page.fault(link, reason, *where)
        if link.attrs["download"] != snippet.path.name:
            reason = f"the download of {name} is called {link.attrs['download']!r}"
            yield page.fault(link, reason, *where)
    badges = [n for n in frame.find("details") if "badge" in n.classes]
    if len(badges) != 1:
        reason = f"the block of {reference} has {len(badges)} badges, not 1"
        yield page.fault(frame, reason, *where)


def diff(site: Site, page: Page, frame: Node, text: str) -> Iterator[Finding]:
    """The block is the computed difference of its two sides."""
    sides = [frame.attrs["data-from"], frame.attrs.get("data-to", "")]
    found = [resolve(site, reference) for reference in sides]
    for reference, (_, _, wrong) in zip(sides, found, strict=True):
        if wrong:
            yield page.fault(frame, wrong, f'"{reference}"', reference)
            return
    wanted = difference(found[0][1], found[1][1])
    if text != wanted:
        reason = f"the block is not the difference of {' and '.join(sides)}: "
        yield page.fault(
            frame,
            reason + differs(text, wanted),
            f'from="{sides[0]}" to="{sides[1]}"',
            sides[0],
        )


def output(site: Site, page: Page, frame: Node, text: str) -> Iterator[Finding]:
    """The block is what the record says that the snippet printed."""
    name, folder = frame.attrs["data-output"], frame.attrs.get("data-record", "")
    where = (f'from="{name}"', name)
    if not site.readable:
        return
    local = folder == "interpreter"
    verification = (
        site.evidence.interpreter if local else site.evidence.verification.get(folder)
    )
    known = verification.snippets.get(name, {}) if verification else {}
    printed = [entry.output.rstrip("\n") + "\n" for entry in known.values()]
    if not printed:
        reason = f"output of {name}, which no record of {folder or 'any run'} has"
        yield page.fault(frame, reason, *where)
    elif text not in printed:
        reason = f"the output of {name} is not that of the record of {folder}: "
        yield page.fault(frame, reason + differs(text, printed[-1]), *where)
    elif folder not in [run.folder for run in site.evidence.runs(name) if run.fresh]:
        what = "that of the interpreter" if local else "stale"
        reason = f"the output of {name} is {what}"
        yield page.fault(frame, reason, *where, weight=Weight.RECORD)


def plain(
    site: Site, page: Page, frame: Node, text: str, commands: set[str]
) -> Iterator[Finding]:
    """Commands that are known, or text in a language that is not published."""
    language = frame.attrs.get("data-language", "")
    allowed = site.options.get("languages") or ["console", "markdown"]
    if language not in allowed or language in PUBLISHED:
        reason = (
            f"code in {language or 'no language'} that is no include: {short(text)}"
        )
        yield page.fault(frame, reason, text)
    if language != "console":
        return
    command = ""
    for line in text.rstrip("\n").split("\n"):
        if command.endswith("\\"):
            command = command[:-1].rstrip() + " " + line.strip().removeprefix("> ")
        elif line.startswith("$ "):
            command = line[2:].strip()
        else:
            reason = f"typed-in output {short(line)}: use an output fence"
            yield page.fault(frame, reason, line)
            continue
        if not command.endswith("\\") and not known(site, command, commands):
            reason = f"command {short(command)}, which README does not list"
            yield page.fault(frame, f"{reason} and no test runs", line)


def known(site: Site, command: str, commands: set[str]) -> bool:
    """Does README list this command, or a test run it?"""
    runs = RUNS.fullmatch(command)
    if runs:
        return (
            runs[1] in site.snippets
            and (site.root / layout.test_file(runs[1])).is_file()
        )
    quoted = re.compile(rf"""(["'`]){re.escape(command)}\1""")
    return command in commands or any(map(quoted.search, test_texts(site)))


def test_texts(site: Site) -> Iterator[str]:
    """The text of every test module."""
    for path in sorted((site.root / "tests").rglob("*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")


def listed(site: Site) -> set[str]:
    """The commands in README: after a $, or as inline code."""
    path = site.root / "README.md"
    text = path.read_text("utf-8", "replace") if path.is_file() else ""
    found = {match[1].strip() for match in COMMAND.finditer(text)}
    return found | {match[1].strip() for match in INLINE.finditer(text)}


def inline(page: Page, node: Node) -> Iterator[Finding]:
    """Code within a line of text stays on one line."""
    text = node.text()
    if "\n" in text.strip() or any(node.find("br")):
        reason = f"inline code of several lines: {short(text)}"
        first = next((c for c in node.children if isinstance(c, str)), "")
        yield page.fault(node, reason, f"<{node.tag}>{first}<br", text)


def honest(site: Site, page: Page, node: Node) -> Iterator[Finding]:
    """The badge says what the records say now."""
    if not site.readable:
        return
    frame = next((n for n in node.ancestors() if "data-snippet" in n.attrs), None)
    row = next((n for n in node.ancestors() if n.tag == "tr"), None)
    name = frame.attrs["data-snippet"] if frame else ""
    if row and not frame:
        name = next((n.text() for n in row.find("code")), "")
    if not isinstance(site.snippets.get(name), Snippet):
        if not frame:  # Else the block itself is reported.
            yield page.fault(node, f"badge of {name!r}, which is no snippet", name)
        return
    wanted = parse(badges.render(site.evidence.status(name))).children[0]
    assert isinstance(wanted, Node)
    if node.text() != wanted.text() or node.classes != wanted.classes:
        reason = f"the badge of {name} is not that of its records; run `make site`"
        yield page.fault(node, reason, f'--8<-- "{name}', name)


def lines(page: Page) -> Iterator[Finding]:
    """Whatever points at a line of code finds one on the same page."""
    marked = {
        node.attrs["data-line"]
        for node in page.nodes
        if "data-line" in node.attrs and node.within("code")
    }
    for node in page.nodes:
        name = node.attrs.get("data-line")
        if name is not None and name not in marked and not node.within("code"):
            known = ", ".join(sorted(marked)) or "none"
            reason = f"data-line={name!r} points at no line of code; there are: {known}"
            yield page.fault(node, reason, f'data-line="{name}"', f"data-line={name}")


def written(source: Source) -> Iterator[Finding]:
    """Line numbers in fences, and classes of the machinery in raw HTML."""
    for match in LINES.finditer(source.plain):
        line = source.plain.count("\n", 0, match.start(1)) + 1
        reason = f"{match[1]}: name lines by [line:...] markers in the snippet"
        yield Finding(source.path, line, reason)
    text = CODE.sub(lambda found: "\n" * found[0].count("\n"), source.plain)
    for match in FAKED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        name = match[1] or match[2]
        reason = f"the class {name!r} is the machinery's: a page cannot give it"
        yield Finding(source.path, line, reason)


def is_notebook(page: Page) -> bool:
    """Is the page made from a notebook, whose outputs are those of its cells?"""
    return page.source is not None and page.source.path.endswith(".ipynb")


def decoded(url: str) -> bytes | None:
    """The bytes in a base64 data: URL."""
    try:
        return base64.b64decode(url.partition(";base64,")[2], validate=True)
    except binascii.Error:
        return None


def differs(actual: str, wanted: str) -> str:
    """The first line in which two texts differ."""
    pairs = zip(actual.split("\n"), wanted.split("\n"), strict=False)
    for number, (mine, theirs) in enumerate(pairs, 1):
        if mine != theirs:
            return f"line {number} is {short(mine)}, not {short(theirs)}"
    return f"{actual.count(chr(10))} lines, not {wanted.count(chr(10))}"
