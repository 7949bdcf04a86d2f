"""Which test caught each mutant: it is tried first, and most mutants cost no more.

`pytest tests/mutants --learn` brings it up to date after tests have changed.
What it lacks, or says wrongly, costs time and nothing else.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")

CaughtBy = dict[str, dict[str, str]]


def read(file: Path = FILE) -> CaughtBy:
    """By snippet and name of the bug: a test, relative to its module."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def write(
    found: CaughtBy, listed: Mapping[str, Collection[str]], file: Path = FILE
) -> None:
    """Add what was found to what is known, and forget what is no longer listed.

    Args:
        found: what the mutants' tests reported.
        listed: the names of all bugs, by snippet.
        file: where it is kept.
    """
    known = read(file)
    tests = {
        snippet: known.get(snippet, {}) | found.get(snippet, {}) for snippet in listed
    }
    kept = {
        snippet: {bug: test for bug, test in tests[snippet].items() if bug in bugs}
        for snippet, bugs in listed.items()
    }
    text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False)
    file.write_text(text + "\n", "utf-8")
