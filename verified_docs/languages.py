"""The languages of snippets: how each is marked and run.

A new language is one line of the table, and a reader of its sections in code/.
"""

import sys
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Language:
    """How files of one kind are marked and run."""

    comment: str  # what starts one, and so a marker
    command: tuple[str, ...]  # what runs a file, before its arguments


LANGUAGES = {".py": Language("#", (sys.executable,))}


def language(snippet: str) -> Language:
    """The language of a snippet, by the end of its name."""
    return LANGUAGES[PurePosixPath(snippet).suffix]
