"""Every file of the built site is, byte for byte, what its sources make now."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from verified_docs.check.site import Finding, Site, short
from verified_docs.pages.made import unmarked

DATED = ("sitemap.xml", "sitemap.xml.gz")  # The day of the build is in them.
AROUND = 25  # characters


def check(site: Site, built: Path) -> Iterator[Finding]:
    """Files of the built site that differ, are lacking, or come from nowhere."""
    pages = {page.file: page.source for page in site.pages}
    made, there = (
        {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
        for folder in (site.made, built)
    )
    for name in sorted(made | there):
        source = pages.get(site.made / name)
        path = source.path if source else f"{built.name}/{name}"
        if name not in there:
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
