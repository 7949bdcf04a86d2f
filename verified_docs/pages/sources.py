"""Files of pages: read, or refused with the line and the reason."""

import json
from pathlib import Path
from typing import Any

import yaml

from verified_docs.pages.errors import PageError

KEYS = ("cell_type", "id", "metadata", "source")


def read(path: Path) -> str:
    """The text without a byte order mark. Raises PageError if it is not UTF-8."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PageError(f"{path}:{line}: the file is not UTF-8") from None


def settings(text: str) -> Any:
    """What YAML says, by the parser in C where there is one. Raises yaml.YAMLError."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def notebook(path: Path) -> dict[str, Any]:
    """The notebook. Raises PageError where its cells lack what a page needs."""
    try:
        found = json.loads(read(path))
    except json.JSONDecodeError as error:
        reason = f"not JSON, perhaps cut short: {error.msg}"
        raise PageError(f"{path}:{error.lineno}: {reason}") from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise PageError(f"{path}:1: it is no notebook: it has no list of cells")
    for number, cell in enumerate(found["cells"], 1):
        for key in KEYS:
            if not isinstance(cell, dict) or key not in cell:
                reason = f"cell {number} has no {key!r}; save it with Jupyter again"
                raise PageError(f"{path}:1: {reason}")
    return found
