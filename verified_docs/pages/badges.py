"""The badge of a code block: what is known of its file, and the details behind it."""

from collections import Counter
from html import escape

from verified_docs.evidence.records import Entry
from verified_docs.evidence.status import Run, Status
from verified_docs.pages.figures import scientific

INTERPRETER = "Triton's interpreter, on the CPU"
FACTS = {
    "capability": "Compute capability",
    "driver": "Driver",
    "cuda": "CUDA",
    "torch": "PyTorch",
    "triton": "Triton",
    "python": "Python",
    "date": "Date",
}


def kind(status: Status) -> str:
    """The state, or "wrong" for a file that is wrong on purpose."""
    return "wrong" if status.snippet.wrong else status.state


def label(status: Status) -> str:
    """The badge in words."""
    fresh = ", ".join(run.gpu for run in status.fresh)
    if status.snippet.wrong:
        known = {
            "verified": f"its failure is tested on {fresh}",
            "failed": "its test failed",
            "skipped too much": "too much of its test was skipped",
            "stale": "its test or text changed since it was recorded",
            "interpreter": "its failure is tested on the interpreter only",
            "unverified": "its failure is not yet tested",
        }
        return f"Wrong on purpose: {known[status.state]}"
    others = "; ".join(f"{r.state} on {r.gpu}" for r in status.runs if not r.fresh)
    if status.fresh:
        return f"GPU-verified on {fresh}{'; ' if others else ''}{others}"
    return {
        "failed": f"Not verified: {others}",
        "skipped too much": f"Not verified: {others}",
        "stale": "Stale: changed since its GPU run",
        "interpreter": "Interpreter only: no GPU run",
        "unverified": "Unverified: no test has run",
    }[status.state]


def render(status: Status) -> str:
    """The badge as a <details> element."""
    runs = [_run(run) for run in status.runs]
    if status.interpreter:
        runs.append(_run(status.interpreter))
    if status.untried:
        runs.append(f"<p>Not run on {escape(', '.join(status.untried))}.</p>")
    if not runs:
        runs.append("<p>No record of a run exists.</p>")
    return (
        f'<details class="badge badge-{kind(status)}" data-search-exclude>'
        f"<summary>{escape(label(status))}</summary>"
        f'<div class="badge-facts">{"".join(runs)}'
        f"<dl><div><dt>SHA-256 of this file</dt>"
        f"<dd><code>{status.snippet.sha256}</code></dd></div></dl>"
        "</div></details>"
    )


def _run(run: Run) -> str:
    name = run.gpu or INTERPRETER
    facts = [(title, str(run.facts.get(key, ""))) for key, title in FACTS.items()]
    facts.append(("Cases passed", str(run.entry.cases)))
    items = "".join(
        f"<div><dt>{title}</dt><dd>{escape(value)}</dd></div>"
        for title, value in facts
        if value
    )
    why = ", ".join(run.entry.failed or run.changed)
    state = "" if run.fresh else f" ({run.state}: {why})".replace(": )", ")")
    return (
        f"<p><strong>{escape(name)}</strong>{escape(state)}</p><dl>{items}</dl>"
        f"{errors_table(run.entry)}{skipped_list(run.entry)}"
    )


def errors_table(entry: Entry) -> str:
    """Per dtype the largest error and its bound; empty if nothing was measured."""
    if not entry.errors:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(dtype)}</th><td>{scientific(found.error)}</td>'
        f"<td>{scientific(found.bound)}</td><td>{escape(found.case)}</td></tr>"
        for dtype, found in entry.errors.items()
    )
    return (
        '<div class="scroll"><table class="facts"><thead><tr><th scope="col">dtype</th>'
        '<th scope="col">largest error</th><th scope="col">bound</th>'
        f'<th scope="col">case</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def skipped_list(entry: Entry) -> str:
    """Why cases were skipped, and how many; empty if none were."""
    if not entry.skipped:
        return ""
    reasons = Counter(entry.skipped.values())
    items = "".join(
        f"<li>{escape(reason)} ({count} case{'s' * (count > 1)})</li>"
        for reason, count in reasons.items()
    )
    return f"<p>Not tried there:</p><ul>{items}</ul>"


def summary(statuses: list[Status]) -> str:
    """The state of all snippets in one sentence."""
    counts = Counter(status.state for status in statuses)
    gpus = list(dict.fromkeys(run.gpu for s in statuses for run in s.fresh))
    on = f" on {escape(', '.join(gpus))}" if gpus else ""
    parts = [f"{counts['verified']} of {len(statuses)} files are GPU-verified{on}"]
    for state, words in (
        ("failed", "failed on a GPU"),
        ("skipped too much", "had too many cases skipped"),
        ("stale", "changed since their GPU run"),
        ("interpreter", "passed on the interpreter only"),
        ("unverified", "not verified"),
    ):
        if counts[state]:
            parts.append(f"{counts[state]} {words}")
    return f'<span class="verified-summary">{"; ".join(parts)}</span>'


def table(statuses: list[Status]) -> str:
    """Every snippet in a table: its badge, and what each GPU showed or did not."""
    gpus = list(dict.fromkeys(gpu for s in statuses for gpu in _column(s)))
    heads = ["file", "state", *(gpus or ["any GPU"])]
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    rows = ""
    for status in statuses:
        column = _column(status)
        cells = "".join(f"<td>{_cell(column.get(gpu))}</td>" for gpu in heads[2:])
        rows += (
            f'<tr><th scope="row"><code>{escape(status.snippet.name)}</code></th>'
            f"<td>{render(status)}</td>{cells}</tr>"
        )
    return (
        f'<div class="scroll"><table class="facts verification"><thead><tr>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _column(status: Status) -> dict[str, Run | None]:
    """What a row of the table says of each GPU, by its name."""
    runs: dict[str, Run | None] = {run.gpu: run for run in status.runs}
    return runs | dict.fromkeys(status.untried)


def _cell(run: Run | None) -> str:
    if run is None:
        return "not run"
    entry = run.entry
    lines = [f"{entry.cases} cases passed" if run.fresh else str(run.state)]
    if entry.skipped:
        lines.append(f"{len(entry.skipped)} cases not tried")
    lines += [
        f"{escape(dtype)}: {scientific(found.error)} of {scientific(found.bound)}"
        for dtype, found in entry.errors.items()
    ]
    return "<br>".join(lines)
