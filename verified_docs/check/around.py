"""What the theme puts around an article: plain words, no markup and no measurement.

The theme writes a page's description and the names of the navigation into its HTML as
they are. They come from front matter, of which a page has few keys, and mkdocs.yml.
"""

from collections.abc import Iterator
from typing import Any

from verified_docs.check.prose import MEASUREMENT, typed
from verified_docs.check.site import Finding, Site, short
from verified_docs.pages.sources import front_matter

FRONT = ("after", "description", "gives", "hide", "idea", "needs", "search")
NAMES = ("site_name", "site_description", "site_author", "copyright", "nav")
MARKUP = '<>&"'


def check(site: Site) -> Iterator[Finding]:
    """Faults of front matter and of the names of the site and its pages."""
    for source in site.sources.values():
        for key, value in front_matter(site.root / source.path).items():
            line = source.line_of(key)
            if key not in FRONT:
                reason = f"front matter has {key!r}; it may have {', '.join(FRONT)}"
                yield Finding(source.path, line, reason)
            for reason in faults(value):
                yield Finding(source.path, line, reason)
    for name in NAMES:
        for reason in faults(site.config[name]):
            yield Finding("mkdocs.yml", 1, reason)


def faults(value: Any) -> Iterator[str]:
    """What is wrong with the words of a value, keys among them."""
    if isinstance(value, dict | list):
        for each in [*value, *(value.values() if isinstance(value, dict) else ())]:
            yield from faults(each)
    elif isinstance(value, str):
        if match := MEASUREMENT.search(value):
            yield typed(match[0])
        if set(value) & set(MARKUP):
            yield f"markup around the article: {short(value)}"
