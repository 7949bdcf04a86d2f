"""The badge of a code block: what is known of its file, and the details behind it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from verified_docs import layout
from verified_docs.evidence.records import Entry, versions
from verified_docs.evidence.status import Run, Status, short
from verified_docs.pages import figures
from verified_docs.pages.figures import breakable, scientific

INTERPRETER = "Triton's interpreter, on the CPU"
FACTS = {
    "capability": "Compute capability",
    "driver": "Driver",
    "cuda": "CUDA",
    "torch": "PyTorch",
    "triton": "Triton",
    "python": "Python",
    "date": "Date",
    "commit": "Commit",
}


def kind(status: Status) -> str:
    """The state in a word, or "wrong" for a file that is wrong on purpose."""
    return "wrong" if status.snippet.wrong else status.state.partition(" ")[0]


def label(status: Status) -> str:
    """The badge in words."""
    rest = (run for run in status.runs if not run.fresh)
    others = [f"{run.state} on {short(run.gpu)}" for run in rest]
    fresh = _gpus(status.fresh)
    if status.snippet.wrong and fresh:
        return f"Wrong on purpose: its failure is tested on {fresh}"
    words = {
        "stale": "Stale: changed since its GPU run",
        "interpreter": "Interpreter only: no GPU run",
        "unverified": "Unverified: no test has run",
    }.get(status.state, f"Not verified: {'; '.join(others)}")
    if fresh:
        words = "; ".join([f"GPU-verified on {fresh}", *others])
    return f"Wrong on purpose: {words}" if status.snippet.wrong else words


def _gpus(runs: Iterable[Run]) -> str:
    """The GPUs of some runs, in a few words."""
    return " and ".join(dict.fromkeys(short(run.gpu) for run in runs))


def again(status: Status) -> str:
    """The state in a word or two, and a link to the badge of the same file above."""
    words = label(status).partition(":")[0]
    if status.state == "verified" and ";" not in words and not status.snippet.wrong:
        words = words.partition(" on ")[0]
    return (
        f'<span class="badge badge-{kind(status)}" data-search-exclude>'
        f'<a href="#{_anchor(status)}"><span class="badge-words">{escape(words)}</span>'
        "</a></span>"
    )


def _anchor(status: Status) -> str:
    return "badge-" + re.sub(r"\W", "-", status.snippet.name.removesuffix(".py"))


def render(
    status: Status, base: str = "/", published: str = "", *, anchor: bool = False
) -> str:
    """The badge as a <details> element, to which `again` leads if it has an `anchor`.

    That stands inside, so that a browser opens the badge for whoever goes there.
    `base` is the way to the root of the site. `published` is the commit whose run
    publishes it, if one does: records of other commits were not made again.
    """
    tried = [*status.runs, *filter(None, [status.interpreter])]
    runs = [_run(run, status.snippet.name, base, published) for run in tried]
    if status.untried:
        runs.append(f"<p>Not run on {escape(', '.join(status.untried))}.</p>")
    if not runs:
        runs.append("<p>No record of a run exists.</p>")
    if status.snippet.gpu_only:
        runs.append("<p>Only a GPU runs it: Triton's interpreter runs no Gluon.</p>")
    name = f' id="{_anchor(status)}"' if anchor else ""
    return (
        f'<details class="badge badge-{kind(status)}" data-search-exclude>'
        f'<summary><span class="badge-words">{escape(label(status))}</span></summary>'
        f'<div class="badge-facts"{name}>{"".join(runs)}'
        f"<dl><div><dt>SHA-256 of this file</dt>"
        f"<dd><code>{status.snippet.sha256}</code></dd></div></dl>"
        "</div></details>"
    )


def _run(run: Run, snippet: str, base: str, published: str) -> str:
    facts = [(title, str(run.facts.get(key, ""))) for key, title in FACTS.items()]
    if run.facts.get("dirty") == "yes":
        facts.append(("Not committed then", "some files"))
    facts.append(("Cases passed", str(run.entry.cases)))
    if run.memchecked:
        facts.append(("Of these under memcheck", str(run.memchecked)))
    if run.sanitized:
        facts.append(("Demo passed under", run.sanitized))
    items = "".join(
        f"<div><dt>{title}</dt><dd>{escape(value)}</dd></div>"
        for title, value in facts
        if value
    )
    state = "" if run.fresh else f" ({run.state})"
    entry = run.entry
    return (
        f"<p><strong>{escape(run.gpu or INTERPRETER)}</strong>{state}</p>"
        f"<dl>{items}</dl>{_list('Changed since:', run.changed)}"
        f"{_list('Failed:', entry.failed)}{_errors(entry)}{_skipped(entry)}"
        f"{_repeat(run, snippet, base, published)}"
    )


def _repeat(run: Run, snippet: str, base: str, published: str) -> str:
    """Where the record is, the command that makes it again, and who has used it.

    Where no file has changed since, the zip has the same bytes, as has the commit of
    this site; that of the run has them in any case, if all was committed then.
    """
    whole = "" if run.facts.get("dirty") == "yes" else run.facts.get("commit", "")
    commit = whole if run.changed else published or whole
    known = commit not in ("", "unknown")
    checkout = f"git checkout {escape(commit)} &amp;&amp; " if known else ""
    command = f"{checkout}python -m pytest {escape(layout.test_file(snippet))}"
    record = layout.verification_file(run.gpu)
    link = f'<a href="{base}{record}">{record}</a>' if run.gpu else "of this machine"
    shown = f"<p>Record: {link}. To repeat it: <code>{command}</code></p>"
    if checkout and not run.changed:
        shown += (
            f'<p>In <a href="{base}tests.zip">the zip of all tests</a> you need no '
            "checkout.</p>"
        )
    if not (published and run.gpu):
        return shown
    if run.facts.get("commit") == published:
        return f"{shown}<p>Made by the run that published this page.</p>"
    made = "Made earlier: the run that published this page did not repeat it."
    return f"{shown}<p>{made}</p>"


def _errors(entry: Entry) -> str:
    """Per dtype the largest error and its bound, or why nothing was measured."""
    if not entry.errors:
        return _list("No error is measured:", [entry.no_accuracy])
    shown = {
        dtype: (scientific(each.error), scientific(each.bound), breakable(each.case))
        for dtype, each in entry.errors.items()
    }
    rows = ((escape(dtype), figures.cells(row)) for dtype, row in shown.items())
    return figures.facts(("dtype", "largest error", "bound", "case"), rows)


def _skipped(entry: Entry) -> str:
    """Why cases were skipped, and how many; empty if none were."""
    counts = Counter(entry.skipped.values())
    told = [f"{why} ({n} case{'s' * (n > 1)})" for why, n in counts.items()]
    return _list("Not tried there:", told)


def _list(title: str, items: list[str]) -> str:
    """The items below a title; empty if there are none."""
    shown = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<p>{title}</p><ul>{shown}</ul>" if items else ""


def proof(statuses: list[Status], caught: int) -> str:
    """What stands behind the site, in figures: of its snippets and their mutants."""
    runs = [run for status in statuses for run in status.fresh]
    verified = sum(bool(status.fresh) for status in statuses)
    gpus = _gpus(runs)
    tritons = sorted({run.facts["triton"] for run in runs})
    facts = [
        (f"{verified} of {len(statuses)}", "files passed on a GPU as they are now"),
        (f"{sum(run.entry.cases for run in runs):,}", "cases of their tests ran there"),
        (f"{caught:,}", "bugs were planted in them, and the tests caught each"),
        (gpus or "none", f"what they ran on, with Triton {' and '.join(tritons)}"),
        (max((run.facts["date"] for run in runs), default="never"), "last run"),
    ]
    items = (f"<li><strong>{escape(n)}</strong> {what}</li>" for n, what in facts)
    return f'<ul class="proof">{"".join(items)}</ul>'


def table(statuses: list[Status], base: str = "/", published: str = "") -> str:
    """Every snippet, in a folded table for each part.

    A row has the badge, and what each GPU showed or did not.
    """
    tried = [run.gpu for status in statuses for run in status.runs]
    untried = [gpu for status in statuses for gpu in status.untried]
    gpus = list(dict.fromkeys([*tried, *untried])) or ["any GPU"]
    heads = ["file", "state", *map(escape, gpus)]
    tables = ""
    for part, those in groupby(statuses, lambda each: layout.part(each.snippet.name)):
        found = [*those]
        rows = _rows(found, gpus, base, published)
        shown = figures.facts(heads, rows, classes="facts verification")
        passed = sum(bool(status.fresh) for status in found)
        told = f"{part}: {passed} of {len(found)} files passed as they are now"
        tables += f"<details><summary>{escape(told)}</summary>{shown}</details>"
    return f"<div>{tables}</div>"


def _rows(
    statuses: list[Status], gpus: list[str], base: str, published: str
) -> Iterator[tuple[str, str]]:
    for status in statuses:
        cells = "".join(
            f'<td data-label="{escape(gpu)}">'
            f"{'<br>'.join(_cell(status, gpu)) or 'not run'}</td>"
            for gpu in gpus
        )
        badge = f"<td>{render(status, base, published)}</td>"
        yield f"<code>{breakable(status.snippet.name)}</code>", badge + cells


def _cell(status: Status, gpu: str) -> Iterator[str]:
    """What a GPU showed, with each of the versions that ran there."""
    runs = [run for run in status.runs if run.gpu == gpu]
    for run in runs:
        if len(runs) > 1:
            yield f"{escape(versions(run.facts))}:"
        yield f"{run.entry.cases} cases passed" if run.fresh else str(run.state)
        if run.entry.skipped:
            number = len(run.entry.skipped)
            yield f"{number} {'case' if number == 1 else 'cases'} not tried"
        for dtype, found in run.entry.errors.items():
            bound = scientific(found.bound)
            yield f"{escape(dtype)}: {scientific(found.error)} of {bound}"
