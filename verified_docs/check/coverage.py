"""Snippets, their tests and their records: all there, all in step."""

import re
from collections.abc import Iterator

from verified_docs import layout
from verified_docs.check.code import Shown
from verified_docs.check.site import EXTENSION, Finding, Site, Weight
from verified_docs.code.snippets import Snippet, SnippetError
from verified_docs.evidence import records
from verified_docs.evidence.records import RecordError

TEST = re.compile(r"^\s*(?:async )?def test_\w+\(|^class Test\w+", re.MULTILINE)


def check(site: Site, shown: Shown) -> Iterator[Finding]:
    """Faults of snippets, their tests and records; `shown` is what the pages show."""
    for name, snippet in site.snippets.items():
        if isinstance(snippet, SnippetError):
            yield Finding(f"snippets/{name}", snippet.line, snippet.reason)
        else:
            yield from on_pages(snippet, shown)
            yield from line_ends(snippet)
        yield from tested(site, name)
    yield from orphans(site)
    yield from unreadable(site)
    if site.readable:
        for snippet in site.snippets.values():
            if isinstance(snippet, Snippet):
                yield from recorded(site, snippet)
        yield from measured(site)
    yield from nav(site)


def on_pages(snippet: Snippet, shown: Shown) -> Iterator[Finding]:
    """Every section is on a page, alone or within another one."""
    pages = shown.sections.get(snippet.name, set())
    path = f"snippets/{snippet.name}"
    if not pages:
        yield Finding(path, 1, "no page shows this snippet")
        return
    spans = [snippet.section(name) for name in pages]
    for section in snippet.sections.values():
        if not any(s.first <= section.first and section.last <= s.last for s in spans):
            reason = f"no page shows the section {section.name!r}"
            yield Finding(path, section.first - 1, reason)


def line_ends(snippet: Snippet) -> Iterator[Finding]:
    """A page cannot carry Windows line ends to the clipboard."""
    at = snippet.data.find(b"\r")
    if at >= 0:
        line = snippet.data.count(b"\n", 0, at) + 1
        reason = "Windows line ends, which a page cannot give to the clipboard; use \\n"
        yield Finding(f"snippets/{snippet.name}", line, reason)


def tested(site: Site, name: str) -> Iterator[Finding]:
    """Every snippet has a mirrored test module, with a test in it."""
    test = site.root / layout.test_file(name)
    if not test.is_file():
        reason = f"there is no mirrored test module {site.relative(test)}"
        yield Finding(f"snippets/{name}", 1, reason)
    elif not TEST.search(test.read_text("utf-8", "replace")):
        yield Finding(site.relative(test), 1, "the module has no test")


def orphans(site: Site) -> Iterator[Finding]:
    """Every test module mirrors a snippet."""
    tested = layout.tested_by(site.root)
    for path in sorted((site.root / layout.TESTS).rglob("test_*.py")):
        if (test := site.relative(path)) not in tested:
            yield Finding(test, 1, "no snippet has these tests")


def unreadable(site: Site) -> Iterator[Finding]:
    """Every record can be read."""
    paths = sorted((site.root / "records").glob("*/*.json"))
    for path in [*paths, site.root / layout.INTERPRETER]:
        try:
            if path.name == layout.VERIFICATION or path not in paths:
                records.load(path)
            else:
                records.load_benchmark(path)
        except RecordError as error:
            reason = str(error).removeprefix(f"{path}:").strip()
            line = re.search(r"line (\d+) column", reason)
            yield Finding(site.relative(path), int(line[1]) if line else 1, reason)
    quoted = site.options.get("gpu")
    folders = sorted({path.parent.name for path in paths})
    if len(folders) > 1 and not quoted:
        reason = f"there are records of {', '.join(folders)}: set the option gpu to one"
        yield Finding("mkdocs.yml", site.config_source.line_of(EXTENSION) or 1, reason)
    if folders and quoted and str(quoted) not in folders:
        line_number = site.config_source.line_of(f"gpu: {quoted}") or 1
        reason = f"there are no records of the GPU {quoted!r} that the pages quote"
        yield Finding("mkdocs.yml", line_number, reason, Weight.RECORD)


def recorded(site: Site, snippet: Snippet) -> Iterator[Finding]:
    """A fresh record on some GPU; a warning where GPUs disagree."""
    path = layout.snippet_file(snippet.name)
    status = site.evidence.status(snippet.name)
    weight = Weight.WARNING if status.state == "verified" else Weight.RECORD
    for run in status.runs:
        if not run.fresh:
            why = ", ".join(run.changed or run.entry.failed)
            yield Finding(path, 1, f"{run.state} on {run.gpu}: {why}", weight)
    for gpu in status.untried:
        yield Finding(path, 1, f"not run on {gpu}", Weight.WARNING)
    if not status.runs:
        yield Finding(path, 1, "no GPU has a record of it", Weight.RECORD)


def measured(site: Site) -> Iterator[Finding]:
    """Benchmarks of files as they are, and entries of snippets that exist."""
    for benchmarks in site.evidence.benchmarks.values():
        for benchmark in benchmarks.values():
            file = site.relative(benchmark.path)
            for name in benchmark.stale(site.root):
                reason = f"{name} changed since it was timed; run `make bench`"
                line = line_in(site, file, f'"{name}"')
                yield Finding(file, line, reason, Weight.RECORD)
    for verification in site.evidence.verification.values():
        file = site.relative(verification.path)
        for name in verification.snippets:
            if name not in site.snippets:
                line = line_in(site, file, f'"{name}"')
                reason = f"record of {name}, which is no snippet"
                yield Finding(file, line, reason, Weight.RECORD)


def line_in(site: Site, path: str, text: str) -> int:
    """The first line of a file that has the text, else 1."""
    before, found, _ = (site.root / path).read_text(encoding="utf-8").partition(text)
    return before.count("\n") + 1 if found else 1


def nav(site: Site) -> Iterator[Finding]:
    """Every page is in the navigation, and the navigation names only pages."""
    if not site.config.get("nav"):
        return
    named = list(site.nav())
    for name in named:
        if name not in site.sources:
            line = site.config_source.line_of(name) or 1
            yield Finding("mkdocs.yml", line, f"nav names {name}, which is no page")
    for name, source in site.sources.items():
        if name not in named:
            yield Finding(source.path, 1, "the page is not in nav of mkdocs.yml")
