"""Every file of the built site is, byte for byte, what its sources make now.

What is no page has a place of its own: in assets/, or as the bytes of something that
was tested or recorded. So no document comes in that the rules for pages do not see.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from verified_docs.check.site import Finding, Site, short
from verified_docs.pages.made import unmarked

DATED = ("sitemap.xml", "sitemap.xml.gz")  # The day of the build is in them.
AROUND = 25  # characters
PLACES = re.compile(
    r"assets/.+\.(css|js|map|mjs|png|svg|txt|woff2)"
    r"|snippets/.+\.py|notebooks/[^/]+\.ipynb"
    r"|records/[^/]+/\w+\.json|records/interpreter/replays/.+\.json"
    r"|404\.html|sitemap\.xml(\.gz)?|search/search_index\.json|LICENSE\.txt"
    r"|(snippets|tests)\.zip"
)


def check(site: Site, built: Path) -> Iterator[Finding]:
    """Files of the built site that differ, are lacking, or come from nowhere."""
    pages = {page.file: page.source for page in site.pages}
    made, there = (
        {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        for folder in (site.made, built)
    )
    for name in sorted(made | there):
        source = pages.get(site.made / name)
        path = source.path if source else f"{built.name}/{name}"
        if not source and not PLACES.fullmatch(name):
            yield Finding(path, 1, "it is no page, and no other file has this place")
        elif name not in there:
            yield Finding(path, 1, "the built site lacks it; run `make site`")
        elif name not in made:
            yield Finding(path, 1, "it is of neither docs nor the theme nor the build")
        elif name not in DATED and (what := differs(site, built, name)):
            yield Finding(path, 1, f"the built site is not of its sources: {what}")


def differs(site: Site, built: Path, name: str) -> str:
    """Where a file differs first, or ""."""
    now, was = (site.made / name).read_bytes(), (built / name).read_bytes()
    if name.endswith(".html"):
        now = unmarked(now.decode(), site.mark).encode()
    if now == was:
        return ""
    pairs = enumerate(zip_longest(now, was))
    start = max(next(n for n, (one, other) in pairs if one != other) - AROUND, 0)
    around = slice(start, start + 3 * AROUND)
    has, wants = (short(each[around].decode(errors="replace")) for each in (was, now))
    return f"{name} has {has}, not {wants}; run `make site`"
