"""The table of `python -m verified_docs status`: what is known of each snippet."""

import re
from pathlib import Path

from verified_docs import layout
from verified_docs.evidence.records import State
from verified_docs.evidence.status import Evidence, Run


def table(root: Path) -> str:
    """A row for each snippet: its pages, and what each GPU and the interpreter say.

    Below it, which files make a record stale and which cases failed. Raises
    RecordError and SnippetError.
    """
    evidence = Evidence(root)
    folders = list(evidence.verification)
    rows = [["snippet", "pages", "interpreter", *folders]]
    notes = []
    for name in layout.names(root):
        status = evidence.status(name)
        local = [status.interpreter] if status.interpreter else []
        cells = [local, *([r for r in status.runs if r.folder == f] for f in folders)]
        shown = [", ".join(map(_cell, runs)) or State.MISSING for runs in cells]
        rows.append([name, ", ".join(pages(root, name)) or "none", *shown])
        notes += [
            f"{name}: {run.state} on {run.folder}: {', '.join(reasons)}"
            for run in (*status.runs, *local)
            if (reasons := run.changed or run.entry.failed)
        ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "", *notes]).rstrip()


def pages(root: Path, snippet: str) -> list[str]:
    """The pages that show a snippet, its differences or its output."""
    docs, quoted = root / "docs", rf'\\?"{re.escape(snippet)}[":\\]'
    found = []
    for page in sorted([*docs.rglob("*.md"), *docs.rglob("*.ipynb")]):
        cell = '|"snippet": ' if page.suffix == ".ipynb" else ""
        if re.search(f"(--8<-- |from=|to={cell}){quoted}", page.read_text("utf-8")):
            found.append(page.relative_to(docs).as_posix())
    return found


def _cell(run: Run) -> str:
    """The state, and how many cases passed."""
    skipped = f", {len(run.entry.skipped)} skipped" if run.entry.skipped else ""
    return f"{run.state} ({run.entry.cases} passed{skipped})"
