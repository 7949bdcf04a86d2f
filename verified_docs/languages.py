"""The languages of snippets: how each is marked and run.

A new language is one line of the table, and a reader of its sections in code/.
"""

import sys
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Language:
    """How files of one kind are marked and run.

    Attributes:
        comment: what starts a comment, and so a marker.
        command: what runs a file, before its arguments (code/snippets.py).
    """

    comment: str
    command: tuple[str, ...]


LANGUAGES = {".py": Language("#", (sys.executable,))}


def language(snippet: str) -> Language:
    """The language of a snippet, by the end of its name."""
    return LANGUAGES[PurePosixPath(snippet).suffix]
