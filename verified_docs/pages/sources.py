"""What pages and fences are told in YAML, and what a page says of itself."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from markdown.extensions.toc import slugify
from mkdocs.utils.meta import get_data

from verified_docs.pages.errors import PageError


def settings(text: str) -> Any:
    """What YAML says, by the parser in C where there is one. Raises yaml.YAMLError."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def options(body: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """What a fence says in YAML, and the defaults of what it leaves out.

    Known are the options, each with its default or, where it must be said, its type.
    Raises PageError or yaml.YAMLError.
    """
    told = settings(body)
    if not isinstance(told, dict):
        raise PageError(f"its body is a YAML mapping with {next(iter(known))}")
    for key, value in told.items():
        if key not in known:
            names = ", ".join(sorted(known))
            raise PageError(f"there is no option {key!r}; the options are: {names}")
        kind = known[key] if isinstance(known[key], type) else type(known[key])
        if not (value and isinstance(value, kind)):
            raise PageError(f"the option {key!r} is a {kind.__name__}, not {value!r}")
    for key, usual in known.items():
        if isinstance(usual, type) and key not in told:
            raise PageError(f"it needs the option {key!r}")
    return {**known, **told}


def headings(path: Path) -> dict[str, str]:
    """The anchors of a reference page's entries, by their titles."""
    text = path.read_text("utf-8") if path.is_file() else ""
    found = re.findall(r"^### (.+?)(?: \{ *#([\w-]+) *\})?\s*$", text, re.MULTILINE)
    return {title: anchor or slugify(title, "-") for title, anchor in found}


def front_matter(path: Path) -> dict[str, Any]:
    """What a page says of itself, in each form that MkDocs knows. Raises PageError."""
    text = path.read_text("utf-8-sig")
    if path.suffix == ".ipynb":
        return dict(json.loads(text)["metadata"].get("page", {}))
    found = get_data(text)[1]
    if text.startswith("---") and not found:
        raise PageError(f"{path}: front matter: no YAML; quote a text that has a colon")
    return found
