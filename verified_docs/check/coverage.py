"""Snippets, their tests and their records: all there, all in step."""

import re
from collections.abc import Iterator

from verified_docs.check.site import Finding, Site, Weight
from verified_docs.code.snippets import Snippet, SnippetError
from verified_docs.evidence import records
from verified_docs.evidence.records import RecordError, State

TEST = re.compile(r"^\s*(?:async )?def test_\w+\(|^class Test\w+", re.MULTILINE)


def check(site: Site) -> Iterator[Finding]:
    """Faults of snippets, their tests and records."""
    shown = sections(site)
    for name, snippet in site.snippets.items():
        if isinstance(snippet, SnippetError):
            yield Finding(f"snippets/{name}", snippet.line, snippet.reason)
        else:
            yield from on_pages(snippet, shown.get(name, set()))
            yield from line_ends(snippet)
        yield from tested(site, name)
    yield from orphans(site)
    yield from unreadable(site)
    if site.readable:
        for snippet in site.snippets.values():
            if isinstance(snippet, Snippet):
                yield from recorded(site, snippet)
        yield from measured(site)


def sections(site: Site) -> dict[str, set[str]]:
    """The sections that pages show, by snippet; "" is the whole file."""
    found: dict[str, set[str]] = {}
    for page in site.pages:
        for node in page.root.find("figure"):
            if "data-made" in node.attrs and "data-snippet" in node.attrs:
                section = node.attrs.get("data-section", "")
                found.setdefault(node.attrs["data-snippet"], set()).add(section)
    return found


def on_pages(snippet: Snippet, pages: set[str]) -> Iterator[Finding]:
    """Every section is on a page, alone or within another one."""
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
    test = site.root / "tests/snippets" / name
    test = test.with_name(f"test_{test.name}")
    if not test.is_file():
        reason = f"there is no mirrored test module {site.relative(test)}"
        yield Finding(f"snippets/{name}", 1, reason)
    elif not TEST.search(test.read_text("utf-8", "replace")):
        yield Finding(site.relative(test), 1, "the module has no test")


def orphans(site: Site) -> Iterator[Finding]:
    """Every test module mirrors a snippet."""
    folder = site.root / "tests" / "snippets"
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder)
        name = name.with_name(name.name.removeprefix("test_"))
        if name.as_posix() not in site.snippets:
            reason = f"there is no snippet snippets/{name.as_posix()} for these tests"
            yield Finding(site.relative(path), 1, reason)


def unreadable(site: Site) -> Iterator[Finding]:
    """Every record can be read."""
    paths = sorted((site.root / "records").glob("*/*.json"))
    for path in [*paths, site.root / records.INTERPRETER]:
        try:
            if path.name == records.VERIFICATION or path not in paths:
                records.load(path)
            else:
                records.load_benchmark(path)
        except RecordError as error:
            reason = str(error).removeprefix(f"{path}:").strip()
            line = re.search(r"line (\d+) column", reason)
            yield Finding(site.relative(path), int(line[1]) if line else 1, reason)
    quoted = site.extension.getConfig("gpu")
    folders = sorted({path.parent.name for path in paths})
    if len(folders) > 1 and not quoted:
        reason = f"there are records of {', '.join(folders)}: set the option gpu to one"
        yield Finding("mkdocs.yml", 1, reason)
    if folders and quoted and str(quoted) not in folders:
        reason = f"there are no records of the GPU {quoted!r} that the pages quote"
        yield Finding("mkdocs.yml", 1, reason, Weight.RECORD)


def recorded(site: Site, snippet: Snippet) -> Iterator[Finding]:
    """A fresh record on some GPU; a warning where GPUs disagree."""
    path = f"snippets/{snippet.name}"
    states = {
        gpu: verification.state(site.root, snippet.name)
        for gpu, verification in site.evidence.verification.items()
    }
    fresh = [gpu for gpu, state in states.items() if state is State.FRESH]
    stale = [gpu for gpu, state in states.items() if state is State.STALE]
    missing = [gpu for gpu, state in states.items() if state is State.MISSING]
    if not fresh and stale:
        reason = f"stale: it or its tests changed since the run on {', '.join(stale)}"
        yield Finding(path, 1, f"{reason}; run `make gpu`", Weight.RECORD)
    elif not fresh:
        yield Finding(path, 1, "no GPU has a record of it", Weight.RECORD)
    else:
        for gpus, what in ((missing, "failed or was not run"), (stale, "is stale")):
            if gpus:
                reason = f"verified on {', '.join(fresh)}, but {what} on "
                yield Finding(path, 1, reason + ", ".join(gpus), Weight.WARNING)
    for gpu, verification in site.evidence.verification.items():
        entry = verification.snippets.get(snippet.name)
        file = site.relative(verification.path)
        if entry is None:
            continue
        line = line_in(site, file, f'"{snippet.name}"')
        if entry.cases < 1:
            yield Finding(file, line, f"{snippet.name}: no case passed on {gpu}")
        for dtype, found in entry.errors.items():
            if not found.error <= found.bound:
                reason = f"{snippet.name}: the {dtype} error {found.error:g} is beyond "
                yield Finding(file, line, f"{reason}its bound {found.bound:g}")


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
                yield Finding(file, line, reason, Weight.WARNING)


def line_in(site: Site, path: str, text: str) -> int:
    """The first line of a file that has the text, else 1."""
    before, found, _ = (site.root / path).read_text(encoding="utf-8").partition(text)
    return before.count("\n") + 1 if found else 1
