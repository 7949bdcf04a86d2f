"""Snippets, their tests and their records: all there, all in step."""

import ast
import re
from collections.abc import Iterable, Iterator

from verified_docs import layout
from verified_docs.check.prose import MEASUREMENT, typed
from verified_docs.check.site import Finding, Site, Weight, read
from verified_docs.code.snippets import Snippet
from verified_docs.evidence import machine, manifest, records
from verified_docs.evidence.records import Facts

TEST = re.compile(r"^\s*(?:async )?def test_\w+\(|^class Test\w+", re.MULTILINE)


def check(site: Site) -> Iterator[Finding]:
    """Faults of snippets, their tests and records."""
    shown = sections(site)
    timed = "\n".join(map(read, sorted((site.root / "benchmarks").rglob("*.py"))))
    for name, snippet in site.snippets.items():
        yield from on_pages(snippet, shown.get(name, set()))
        yield from recorded(site, snippet)
        file, test = layout.snippet_file(name), layout.test_file(name)
        if not (snippet.wrong or re.search(rf"\b{snippet.path.stem}\b", timed)):
            yield Finding(file, 1, "no benchmark knows it", Weight.WARNING)
        yield from tested(site, file, test)
    tested_by = layout.tested_by(site.root)
    for module in sorted((site.root / layout.TESTS).rglob("test_*.py")):
        if (test := site.relative(module)) not in tested_by:
            yield Finding(test, 1, "no snippet has these tests")
    yield from measured(site)
    yield from replayed(site)


def sections(site: Site) -> dict[str, set[str]]:
    """The sections that pages show, by snippet; "" is the whole file."""
    found: dict[str, set[str]] = {}
    for page in site.pages:
        for node in filter(site.stamp, page.root.css("[data-snippet]")):
            shown = found.setdefault(node.attrs.sget("data-snippet"), set())
            shown.add(node.attrs.sget("data-section"))
    return found


def on_pages(snippet: Snippet, pages: set[str]) -> Iterator[Finding]:
    """Every section is on a page, alone or within another one."""
    path = layout.snippet_file(snippet.name)
    if not pages:
        yield Finding(path, 1, "no page shows this snippet")
        return
    names = pages & {"", *snippet.sections}
    shown = {number for name in names for number in snippet.section(name).numbers}
    for section in snippet.sections.values():
        if not shown.issuperset(section.numbers):
            reason = f"no page shows the section {section.name!r}"
            yield Finding(path, section.numbers[0], reason)


def tested(site: Site, file: str, test: str) -> Iterator[Finding]:
    """Every snippet has a mirrored test module, with a test in it, that loads it."""
    if not (site.root / test).is_file():
        yield Finding(file, 1, f"there is no mirrored test module {test}")
    elif not TEST.search(read(site.root / test)):
        yield Finding(test, 1, "the module has no test")
    elif file not in manifest.reached(site.root, [test]):
        yield Finding(test, 1, f"none of its imports leads to {file}")
    else:
        yield from unused(site, file, test)


def unused(site: Site, file: str, test: str) -> Iterator[Finding]:
    """Whatever function is shown is called from somewhere, or no test sees it run."""
    trees = [ast.parse(read(site.root / each), each) for each in (file, test)]
    used = {word for tree in trees for node in ast.walk(tree) for word in uses(node)}
    for node in trees[0].body:
        if isinstance(node, ast.FunctionDef) and node.name not in used:
            reason = f"neither the file nor its tests use {node.name}"
            yield Finding(file, node.lineno, reason)


def uses(node: ast.AST) -> Iterator[str]:
    """What a node names, unless it defines that."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name) | ast.alias(name):
            yield name


def recorded(site: Site, snippet: Snippet) -> Iterator[Finding]:
    """A fresh record on some GPU; a warning where GPUs disagree."""
    path = layout.snippet_file(snippet.name)
    status = site.evidence.status(snippet.name)
    weight = Weight.WARNING if status.state == "verified" else Weight.RECORD
    for run in status.runs:
        if not run.fresh:
            why = ", ".join(run.changed or run.entry.failed or run.entry.skipped)
            yield Finding(path, 1, f"{run.state} on {run.gpu}: {why}", weight)
            continue
        lacks = manifest.imported(site.root, snippet.name) - run.entry.manifest.keys()
        reason = f"has no hash of {', '.join(sorted(lacks))}" if lacks else ""
        if reason := reason or misnamed(site, run.facts, run.entry.manifest):
            yield Finding(path, 1, f"its record of {run.gpu} {reason}", Weight.RECORD)
    for gpu in status.untried:
        yield Finding(path, 1, f"not run on {gpu}", Weight.WARNING)
    if not status.runs:
        yield Finding(path, 1, "no GPU has a record of it", Weight.RECORD)
    local = status.interpreter and status.interpreter.fresh
    if not (status.fresh or local or snippet.gpu_only):
        reason = "unverified: its tests have not run since it changed"
        yield Finding(path, 1, reason, Weight.WARNING)


def misnamed(site: Site, facts: Facts, files: Iterable[str]) -> str:
    """What is said of a record of files, as they are now, that its commit has not."""
    commit = facts.get("commit", "unknown")
    if machine.lost(site.root, commit):
        return f"names {commit}, which is no commit here"
    differ = machine.differing(site.root, commit, files)
    return f"names {commit}, which differs in {', '.join(differ)}" if differ else ""


def measured(site: Site) -> Iterator[Finding]:
    """The quoted GPU has records, and all records are of snippets that exist.

    A list that is out of date is a warning: what a page shows of it is refused there.
    """
    folders = {*site.evidence.verification, *site.evidence.benchmarks}
    quoted = site.evidence.quoted
    if folders and quoted not in folders:
        reason = f"there are no records of the GPU {quoted!r} that the pages quote"
        yield Finding("mkdocs.yml", 1, reason, Weight.RECORD)
    for benchmarks in site.evidence.benchmarks.values():
        for benchmark in benchmarks.values():
            path = site.relative(benchmark.path)
            if changed := site.evidence.stale(benchmark):
                reason = f"timed before these changed: {', '.join(sorted(changed))}"
                reason += "; run `make bench`"
                yield Finding(path, 1, reason, Weight.WARNING)
            files = benchmark.manifest.keys() - changed
            if files and (reason := misnamed(site, benchmark.environment, files)):
                yield Finding(path, 1, reason, Weight.RECORD)
    for verification in site.evidence.verification.values():
        for name in verification.snippets.keys() - site.snippets.keys():
            reason = f"record of {name}, which is no snippet"
            yield Finding(site.relative(verification.path), 1, reason, Weight.RECORD)


def replayed(site: Site) -> Iterator[Finding]:
    """Replays are of files as they are, and what is said at their steps is theirs.

    tests/replays sees that pages show them.
    """
    folder = site.root / layout.REPLAYED
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).with_suffix(".py").as_posix()
        own = dict.fromkeys((layout.snippet_file(name), layout.replay_file(name)), "")
        record = records.replay(path)
        for run in record["runs"]:
            for said in (run["title"], *(step["say"] for step in run["steps"])):
                if match := MEASUREMENT.search(said):
                    yield Finding(site.relative(path), 1, typed(match[0]))
        if changed := records.changed(site.root, own | record["manifest"]):
            reason = f"recorded before these changed: {', '.join(changed)}"
            reason += "; run `pytest tests/replays`"
            yield Finding(site.relative(path), 1, reason)
