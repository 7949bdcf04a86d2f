"""`python -m verified_docs.needs "make gpu" torch triton`, before anything runs.

Exits with what this Python lacks for a target of the Makefile: its version, modules.
Python 3.6 can read it.
"""

import importlib.util
import sys

ANOTHER = "name another Python, as in `make PYTHON=python3.11`"


def lack(target: str, *needed: str) -> str:
    """What is lacking, as a sentence, or ""."""
    if sys.version_info < (3, 11, 5):
        found = ".".join(map(str, sys.version_info[:3]))
        wrong = f"is Python {found}; it must be 3.11.5 or newer: {ANOTHER}"
        return f"{target}: {sys.executable} {wrong}"
    lost = [name for name in needed if not importlib.util.find_spec(name)]
    if lost:
        wrong = f"lacks {', '.join(lost)}: install them, or {ANOTHER}"
        return f"{target}: {sys.executable} {wrong}"
    return ""


if __name__ == "__main__":
    sys.exit(lack(*sys.argv[1:]) or 0)
