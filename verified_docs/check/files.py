"""Every file of the site: where it comes from, and whether it is still that."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from verified_docs.check.site import Finding, Page, Site
from verified_docs.pages.inputs import digest

# What MkDocs and its plugins make, beside the pages.
BUILT = ("404.html", "search/search_index.json", "sitemap.xml", "sitemap.xml.gz")
ARCHIVE = "snippets.zip"


def check(site: Site) -> Iterator[Finding]:
    """Faults of pages that are old, missing or of no source, and of all other files."""
    built = {page.file: page for page in site.pages}
    for target, source in site.sources.items():
        if target not in built:
            reason = "the built site lacks this page; run `make site`"
            yield Finding(source.path, 1, reason)
        elif stamp(built[target]) != digest(source.markdown):
            reason = "the built page is not of this text; run `make site`"
            yield Finding(source.path, 1, reason)
    folders = [site.docs, *map(Path, site.config.theme.dirs)]
    for path in sorted(site.built.rglob("*")):
        name = path.relative_to(site.built).as_posix()
        if path.is_dir() or path in site.sources or name in BUILT:
            continue
        if name == ARCHIVE:
            yield from archive(site, path)
        elif not any(same(path, folder / name) for folder in folders):
            reason = "it is of neither docs nor the theme nor the build"
            yield Finding(site.relative(path), 1, reason)


def stamp(page: Page) -> str:
    """The hash at the end of a page."""
    nodes = page.article.walk() if page.article else ()
    return next((n.attrs["data-source"] for n in nodes if "data-source" in n.attrs), "")


def same(one: Path, other: Path) -> bool:
    """Whether both files are there and have the same bytes."""
    return other.is_file() and one.read_bytes() == other.read_bytes()


def archive(site: Site, path: Path) -> Iterator[Finding]:
    """The zip holds the snippets and the licence as they are."""
    wanted = {f"snippets/{name}" for name in site.snippets} | {"LICENSE"}
    try:
        with ZipFile(path) as file:
            found = {name: file.read(name) for name in file.namelist()}
    except BadZipFile:
        found = {}
    old = [n for n in wanted if found.get(n) != (site.root / n).read_bytes()]
    if old or wanted != found.keys():
        reason = f"its files are not those of now: {', '.join(sorted(old))}"
        yield Finding(site.relative(path), 1, reason)
