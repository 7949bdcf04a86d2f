"""Links and fetched files: each leads to a file of the site, and to an anchor in it."""

import posixpath
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from verified_docs.check.site import Finding, Page, Site

ABROAD = ("http", "https", "mailto")


def check(site: Site) -> Iterator[Finding]:
    """Broken addresses, ids that two elements share, steps without a line of code."""
    ids = {
        page.file: Counter(node.attrs.sget("id") for node in page.root.css("[id]"))
        for page in site.pages
    }
    for page in site.pages:
        nodes = page.root.css("[href], [src]")
        urls = {n.attrs.sget("href") or n.attrs.sget("src"): n.tag for n in nodes}
        for url, tag in urls.items():
            if wrong := fault(site, page, url, str(tag), ids):
                yield page.fault(f"<{tag}> has {url[:60]!r}, which {wrong}", url)
        for name, count in ids[page.file].items():
            if count > 1:
                yield page.fault(f"{count} elements have the id {name!r}", name)
        marked = {n.attrs.sget("data-line") for n in page.root.css("code [data-line]")}
        for node in page.root.css("[data-line]"):
            if (line := node.attrs.sget("data-line")) not in marked:
                yield page.fault(f"no line of code is marked {line!r}", line)


def fault(
    site: Site, page: Page, url: str, tag: str, ids: Mapping[Path, Collection[str]]
) -> str:
    """What is wrong with an address, or ""."""
    parts = urlsplit(url.strip())
    if parts.scheme or parts.netloc:
        # A page names its own address, but loads nothing by one.
        if tag != "a" and not url.startswith(site.config.site_url or url):
            return "is loaded from elsewhere"
        if tag == "a" and url.startswith(site.config.site_url or "\n"):
            return "is of this site, and breaks where that is served elsewhere"
        known = parts.scheme in ABROAD
        return "" if known else f"is neither of this site nor of {', '.join(ABROAD)}"
    path = unquote(parts.path)
    if path.startswith("/"):
        # MkDocs writes 404.html with absolute addresses: it is served anywhere.
        if page.source is not None or not path.startswith(site.prefix):
            return "breaks below a sub-path"
        target = site.made / path.removeprefix(site.prefix)
    else:
        target = page.file.parent / path if path else page.file
    target = Path(posixpath.normpath(target.as_posix()))
    if target.is_dir():
        if path and not path.endswith(("/", ".", "..")):
            return "is a folder and needs a / at its end"
        target /= "index.html"
    if not (target.is_relative_to(site.made) and target.is_file()):
        return "leads to no file of the site"
    anchor = unquote(parts.fragment)
    known_here = ids.get(target, {anchor, ""})
    return "" if not anchor or anchor in known_here else f"has no anchor {anchor!r}"
