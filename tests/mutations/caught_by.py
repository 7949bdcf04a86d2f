"""Which test caught each mutant: it is tried first, and most mutants cost no more.

`pytest tests/mutations --learn` brings it up to date after tests have changed.
What it lacks, or says wrongly, costs time and nothing else.
"""

import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")

CaughtBy = dict[str, dict[str, str]]


def read(file: Path = FILE) -> CaughtBy:
    """By snippet and name of the bug: a test, relative to its module."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def write(found: CaughtBy, file: Path = FILE) -> None:
    """Add what was found to what is known."""
    known = read(file)
    for snippet, tests in found.items():
        known[snippet] = known.get(snippet, {}) | tests
    text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False)
    file.write_text(text + "\n", "utf-8")
