"""The record of what is known to compile: of which files, with which Triton."""

import json
from pathlib import Path
from typing import Any

import triton

from verified_docs import layout
from verified_docs.evidence import manifest, records

VERSION = f"triton {triton.__version__}"


def known(root: Path, snippet: str) -> bool:
    """Has the snippet, as it is now, been compiled with this Triton?"""
    return _read(root)[VERSION].get(snippet) == _files(root, snippet)


def note(root: Path, snippet: str) -> None:
    """Write down that it compiles; another process may do so for others meanwhile."""
    path = root / layout.COMPILED
    with records.alone(path.parent):
        found = _read(root)
        names = layout.names(root)
        found[VERSION] = {n: files for n, files in found[VERSION].items() if n in names}
        found[VERSION][snippet] = _files(root, snippet)
        records.write(path, json.dumps(found, indent=1, sort_keys=True) + "\n")


def _files(root: Path, snippet: str) -> records.Manifest:
    """The snippet, what it imports, and what compiles it."""
    files = manifest.reached(root, [layout.snippet_file(snippet)])
    judge = (root / "tests/compile").glob("*.py"), [root / "benchmarks/calls.py"]
    files |= {path.relative_to(root).as_posix() for paths in judge for path in paths}
    return records.hashes(root, files)


def _read(root: Path) -> dict[str, Any]:
    """Of this version of Triton only: what others compiled is of no use any more."""
    path = root / layout.COMPILED
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {VERSION: found.get(VERSION, {})}
