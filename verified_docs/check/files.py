"""Every file of the built site is, byte for byte, what its sources make now.

What is no page has a place of its own: in assets/, or as the bytes of something that
was tested or recorded. So no document comes in that the rules for pages do not see.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from verified_docs.check.site import Finding, Site
from verified_docs.pages.made import unmarked

TRIED = ("notebooks/", "records/", "snippets/")
DATED = ("sitemap.xml", "sitemap.xml.gz")  # The day of the build is in them.
PLACES = re.compile(
    r"assets/.+\.(css|js|map|mjs|png|svg|txt|woff2)"
    r"|snippets/.+\.py|notebooks/[^/]+\.ipynb"
    r"|records/[^/]+/\w+\.json|records/interpreter/replays/.+\.json"
    r"|404\.html|sitemap\.xml(\.gz)?|search/search_index\.json|LICENSE\.txt"
    r"|(snippets|tests|zips/.+)\.zip"
)


def check(site: Site, built: Path) -> Iterator[Finding]:
    """Files of the built site that differ, are lacking, or come from nowhere."""
    pages = {page.file: page.path for page in site.pages if page.source}
    made, there = (
        {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        for folder in (site.made, built)
    )
    for name in sorted(made | there):
        page = pages.get(site.made / name)
        path = page or f"{built.name}/{name}"
        if not page and not PLACES.fullmatch(name):
            yield Finding(path, 1, "it is no page, and no other file has this place")
        elif name not in there:
            yield Finding(path, 1, "the built site lacks it; run `make site`")
        elif name not in made:
            yield Finding(path, 1, "it is of neither docs nor the theme nor the build")
        elif name not in DATED and (built / name).read_bytes() != made_of(site, name):
            reason = f"the built site is not of its sources: {name}; run `make site`"
            yield Finding(path, 1, reason)


def made_of(site: Site, name: str) -> bytes:
    """What the sources make now of a file, in a build without a mark."""
    path = site.made / name
    if path.suffix != ".html":  # A link in docs/ may have become a copy.
        tried = name.startswith(TRIED) and (site.root / name).is_file()
        return (site.root / name if tried else path).read_bytes()
    return unmarked(path.read_text("utf-8"), site.mark).encode()
