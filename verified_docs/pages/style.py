"""How the pictures of the site show a kernel, an axis and a span of time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verified_docs.pages.errors import PageError


@dataclass(frozen=True)
class Style:
    """The list `plots` of mkdocs.yml.

    A kernel has a colour, --series-1 and so on in colours.css, and a marker.
    """

    kernels: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    spans: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of(self, name: str, table: str) -> Any:
        """What a table has for a name: kernel, axis or span. Raises PageError."""
        if name not in (known := getattr(self, table)):
            raise PageError(f"{name!r} is not in mkdocs.yml, plots: {table}")
        return known[name]


def short(name: str) -> str:
    """A kernel's name as a picture has room for: a file without folder and suffix."""
    return name.rpartition("/")[2].removesuffix(".py")
