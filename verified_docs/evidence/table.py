"""The table of `python -m verified_docs status`: each snippet and what is known of it.

One row per snippet: the pages that include it, its tests, what the interpreter said,
and one column per GPU with a record.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from verified_docs.code import snippets
from verified_docs.evidence import records
from verified_docs.evidence.records import State, Verification

FOOTNOTE = (
    "fresh: passed, and neither the file nor its tests changed since; "
    "stale: one of them did"
)


def table(root: Path) -> str:
    """The whole table as text.

    Args:
        root: the repository.

    Returns:
        Lines of aligned columns, then one line per oddity: a record of a snippet that
        is gone.

    Raises:
        RecordError: a record cannot be read.
    """
    gpus = records.load_all(root / "records")
    interpreter = records.load(root / records.INTERPRETER)
    names = snippets.names(root / "snippets")
    pages = including_pages(root / "docs", names)
    rows = [
        ["snippet", "pages", "tests", "interpreter", *(gpus or ["GPU"])],
        *(
            [
                name,
                ", ".join(pages[name]) or "none",
                _tests(root, name),
                _result(interpreter, root, name),
                *([_result(gpu, root, name) for gpu in gpus.values()] or ["missing"]),
            ]
            for name in names
        ),
    ]
    lines = [*_aligned(rows), "", FOOTNOTE]
    for gpu, verification in gpus.items():
        lines += [
            f"{gpu}: has a record of {name}, which is not there"
            for name in verification.snippets
            if name not in names
        ]
    return "\n".join(lines)


def including_pages(docs: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """For each snippet the pages that include it, its differences or its output."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for page in sorted([*docs.rglob("*.md"), *docs.rglob("*.ipynb")]):
        text = page.read_text(encoding="utf-8", errors="replace")
        keys = "--8<-- |from=|to="
        if page.suffix == ".ipynb":
            text, keys = text.replace('\\"', '"'), f'{keys}|"snippet": '
        mentioned = set(re.findall(rf'(?:{keys})"([^":\s]+)', text))
        for name in names:
            if name in mentioned:
                found[name].append(page.relative_to(docs).as_posix())
    return found


def _tests(root: Path, snippet: str) -> str:
    path = Path(snippet)
    test = path.with_name(f"test_{path.name}")
    return "yes" if (root / "tests/snippets" / test).is_file() else "none"


def _result(record: Verification, root: Path, snippet: str) -> str:
    """The state, and how many cases passed."""
    state = record.state(root, snippet)
    if state is State.MISSING:
        return state
    entry = record.snippets[snippet]
    skipped = f", {len(entry.skipped)} skipped" if entry.skipped else ""
    return f"{state} ({entry.cases} passed{skipped})"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (map(str.ljust, row, widths) for row in rows)
    return ["  ".join(row).rstrip() for row in padded]
