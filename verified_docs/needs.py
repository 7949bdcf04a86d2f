"""`python -m verified_docs.needs "make gpu" torch triton`, before anything runs.

Exits with what this Python lacks for a target of the Makefile: its version, modules, a
GPU if torch is one of them. Python 3.6 can read it.
"""

import importlib.util
import sys


def lack(target: str, *needed: str) -> str:
    """What is lacking, as a sentence, or ""."""
    if sys.version_info < (3, 11):  # noqa: UP036
        found = ".".join(map(str, sys.version_info[:2]))
        return (
            f"{target}: {sys.executable} is Python {found}; it must be 3.11 or newer: "
            "name another, as in `make PYTHON=python3.11`"
        )
    lost = [name for name in needed if not importlib.util.find_spec(name)]
    if lost:
        return (
            f"{target}: {sys.executable} lacks {', '.join(lost)}: install them, or "
            "name another Python, as in `make PYTHON=python3.11`"
        )
    if "torch" in needed:
        import torch

        if not torch.cuda.is_available():
            return (
                f"{target}: torch of {sys.executable} sees no GPU here; nothing was "
                "run, and no record was touched"
            )
    return ""


if __name__ == "__main__":
    sys.exit(lack(*sys.argv[1:]) or 0)
