"""Figures on the pages: each is what its record says now."""

import re
from collections.abc import Iterator
from typing import Any

from verified_docs.check.code import CODE
from verified_docs.check.dom import Node, parse
from verified_docs.check.prose import MEASUREMENT, short
from verified_docs.check.site import Finding, Page, Site, Weight
from verified_docs.code.snippets import Snippet
from verified_docs.pages import badges, plots
from verified_docs.pages.figures import (
    FORMATS,
    FigureError,
    field,
    pointer,
    render,
    select,
)

FENCE = re.compile(
    r"^([ \t>]*)(`{3,}|~{3,})[ \t]*(plot|measurements)\b[^\n]*\n(.*?)^[ \t>]*\2",
    re.DOTALL | re.MULTILINE,
)


def check(site: Site) -> Iterator[Finding]:
    """Faults in quoted figures, tables and plots."""
    for page in site.pages:
        lines = directives(page)
        for node in page.nodes:
            if "measured" in node.classes and node.tag == "data":
                if site.readable:
                    yield from figure(site, page, node, lines.get(id(node)))
            elif "unmeasured" in node.classes:
                yield from unmeasured(page, node, lines.get(id(node)))
            elif "stated" in node.classes and not node.attrs.get("title", "").strip():
                reason = f"the figure {short(node.text())} names no source"
                yield page.fault(node, reason, node.text())
            elif "verified-summary" in node.classes:
                yield from remade(site, page, node, badges.summary)
            elif "verification" in node.classes and node.tag == "table":
                yield from remade(site, page, node, badges.table)
        yield from drawn(site, page)


def directives(page: Page) -> dict[int, int]:
    """For each quoted figure by its id(): the line of its directive.

    Empty where the page has not as many figures as its source.
    """
    if page.source is None:
        return {}
    text = CODE.sub(lambda found: "\n" * found[0].count("\n"), page.source.plain)
    starts = [match.start() for match in re.finditer(r"\{measured:", text)]
    quoted = [
        node
        for node in page.nodes
        if (node.tag == "data" and "measured" in node.classes)
        or ("unmeasured" in node.classes and not node.within(".no-record"))
    ]
    if len(starts) != len(quoted):
        return {}
    pairs = zip(quoted, starts, strict=True)
    return {id(node): text.count("\n", 0, start) + 1 for node, start in pairs}


def figure(site: Site, page: Page, node: Node, line: int | None) -> Iterator[Finding]:
    """One quoted figure: its value is in the record, and it is shown as it is."""
    shown = node.text()
    source = node.attrs.get("data-source", "")
    path, _, key = source.partition(" ")
    file = site.root / path
    line = line or (page.source.line_of(key, shown) if page.source else None)
    if not (path.startswith("records/") and file.is_file()):
        reason = f"{short(shown)} quotes {path!r}, which is not there"
        yield page.at(line, node, reason)
        return
    try:
        value = look_up(site.evidence.data(file.stem) or {}, key)
    except (ValueError, IndexError):
        value = None
    if value is None:
        reason = f"{short(shown)}: {path} has nothing for {key!r}"
        yield page.at(line, node, reason)
    elif str(value) != node.attrs.get("value"):
        reason = f"{short(shown)}: {path} now says {value} for {key!r}; run `make site`"
        yield page.at(line, node, reason)
    elif shown.removesuffix(" (stale)") not in forms(value):
        reason = f"{short(shown)} is not {value}, which {path} says for {key!r}"
        yield page.at(line, node, reason)
    elif "stale" in node.classes:
        reason = f"{short(shown)} was measured before the file changed"
        yield page.at(line, node, reason, Weight.RECORD)


def look_up(record: dict[str, Any], key: str) -> Any:
    """The value of "/a/json/pointer", or of "value/inside filter=x filter=y"."""
    if key.startswith("/"):
        return pointer(record, key)
    what, *filters = key.split()
    where = dict(item.split("=", 1) for item in filters)
    return field(select(record, where, what.partition("/")[0])[0], what)


def forms(value: Any) -> set[str]:
    """Every way in which a page may show a value."""
    found = {render(value)}
    for form in FORMATS:
        try:
            found.add(render(value, form))
        except FigureError:
            break
    return found


def unmeasured(page: Page, node: Node, line: int | None) -> Iterator[Finding]:
    """A figure that no record has yet."""
    frame = next((n for n in node.ancestors() if "no-record" in n.classes), None)
    if frame and page.source:  # A plot or a table, known by its title.
        title = frame.text().partition(":")[0]
        line = page.source.line_of(title, start=page.start(node))
    yield page.at(line, node, "a figure that is not yet measured", Weight.RECORD)


def remade(site: Site, page: Page, node: Node, make: Any) -> Iterator[Finding]:
    """The state of all snippets, as the records have it now."""
    known = [n for n, s in site.snippets.items() if isinstance(s, Snippet)]
    if not site.readable or len(known) < len(site.snippets):
        return
    wanted = parse(make([site.evidence.status(name) for name in known]))
    if node.text() != wanted.text():
        reason = "the state of verification is not that of the records; run `make site`"
        yield page.fault(node, reason, "{verified:", "```verification")


def drawn(site: Site, page: Page) -> Iterator[Finding]:
    """Tables and plots: drawn once more, they are what the page has."""
    if page.source is None or not site.readable:
        return
    built = [n for n in page.nodes if n.tag == "figure" or "no-record" in n.classes]
    shapes = [shape(node) for node in built]
    for match in FENCE.finditer(page.source.plain):
        line = page.source.plain.count("\n", 0, match.start(2)) + 1
        body = re.sub(rf"^{re.escape(match[1])}", "", match[4], flags=re.MULTILINE)
        for number, text in enumerate(body.split("\n"), 1):
            if typed := MEASUREMENT.search(text):
                reason = f"typed-in measurement {short(typed[0])} in a {match[3]}"
                yield Finding(page.source.path, line + number, reason)
        make = plots.table if match[3] == "measurements" else plot
        try:
            wanted = parse(make(site.evidence, body))
        except FigureError as error:
            yield Finding(page.source.path, line, f"{match[3]}: {error}")
            continue
        if shape(next(n for n in wanted.children if isinstance(n, Node))) not in shapes:
            reason = f"this {match[3]} is not that of the records; run `make site`"
            yield Finding(page.source.path, line, reason)


def plot(evidence: Any, body: str) -> str:
    """The plot, whatever the prefix of its ids."""
    return plots.plot(evidence, body, "")


def shape(node: Node) -> tuple[Any, ...]:
    """Tags, attributes and texts, without the ids."""
    attrs = {k: v for k, v in node.attrs.items() if k not in ("id", "aria-labelledby")}
    children = (c if isinstance(c, str) else shape(c) for c in node.children)
    return (node.tag, *sorted(attrs.items()), *children)
