"""Around the article: the theme's own markup and words, its scripts, the search index.

A word there is one of the configuration's, of a page's title or headings, or of the
theme's templates; a script is one whose hash is in the page's Content-Security-Policy,
which is computed once more.
"""

import functools
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verified_docs.check.dom import Node
from verified_docs.check.site import Finding, Page, Site, read, short
from verified_docs.pages.policy import protected

ELEMENTS = re.compile(
    r"html|head|title|meta|link|script|body|header|footer|main|aside|nav|div|span|p|a|ul"
    r"|ol|li|h1|h3|form|label|img|input|button|svg|path|article|code"
)
SHOWN = ("description", "og:site_name", "og:title", "og:description")
SPOKEN = ("aria-label", "alt", "placeholder", "title")
TAGS = re.compile(r"<[^>]*>|\{[{%#].*?[}%#]\}", re.DOTALL)
INDEX = "search/search_index.json"


def check(site: Site) -> Iterator[Finding]:
    """Faults outside the articles."""
    for page in site.pages:
        yield from around(site, page)
        yield from policy(page)
    yield from index(site)


def around(site: Site, page: Page) -> Iterator[Finding]:
    """Elements, attributes and words that are not the theme's."""
    for node in outside(page, page.root):
        bad = [name for name in node.attrs if re.match("on|style$|srcdoc$", name)]
        if bad or not ELEMENTS.fullmatch(node.tag):
            what = f"<{' '.join([node.tag, *bad])}>"
            yield page.fault(f"{what} outside the article", node.text())
            continue
        said = [text for text in node.children if isinstance(text, str)]
        said += [node.attrs[name] for name in SPOKEN if name in node.attrs]
        if (node.attrs.get("name") or node.attrs.get("property")) in SHOWN:
            said.append(node.attrs.get("content", ""))
        for text in said if node.tag != "script" else ():
            if not known(site, text):
                reason = (
                    f"{short(text)} stands outside the article and is not the theme's"
                )
                yield page.fault(reason, text)


def outside(page: Page, node: Node) -> Iterator[Node]:
    """The nodes of a page that no author wrote, comments left out."""
    yield node
    if node.tag != "article" or page.source is None:
        for child in node.elements:
            if child.tag != "!":
                yield from outside(page, child)


def known(site: Site, text: str) -> bool:
    """Is the text made of words that the theme, its configuration or titles have?"""
    parts = [plain(part) for part in re.split(r"\s[-\u2013]\s|:\s", text)]
    return plain(text) in words(site) or all(part in words(site) for part in parts)


def plain(text: str) -> str:
    """Letters and digits only."""
    return "".join(filter(str.isalnum, html.unescape(text))).casefold()


@functools.cache
def words(site: Site) -> frozenset[str]:
    """Every text that may stand around an article."""
    found = {"", *strings(dict(site.config)), *strings(dict(site.config.theme))}
    for source in site.sources.values():
        found.update(strings(source.meta))
    for page in site.pages:
        own = page.article if page.source else None
        headings = own.find("h1", "h2", "h3", "h4") if own else ()
        found.update(node.text().removesuffix("\u00b6") for node in headings)
    for folder in map(Path, site.config.theme.dirs):
        for path in folder.rglob("*.html"):
            found.update(TAGS.split(read(path)))
        english = folder / "partials" / "languages" / "en.html"
        if english.is_file():
            found.update(re.findall(r'": "([^"]*)"', read(english)))
    whole = {plain(text) for text in found}
    split = (re.split(r"\s[-\u2013]\s|:\s", text) for text in found)
    return frozenset(whole.union(*(map(plain, parts) for parts in split)))


def strings(value: Any) -> Iterator[str]:
    """Every text in nested mappings and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


def policy(page: Page) -> Iterator[Finding]:
    """The policy is the one that the scripts of the theme need, and comes first."""
    text = read(page.file)
    try:
        good = protected(text) == text
    except ValueError:
        good = False
    if not good:
        yield page.fault("its Content-Security-Policy is not of this page")


def searched(node: Node) -> str:
    """The text of a page that the search is to find."""
    return "".join(
        child if isinstance(child, str) else searched(child)
        for child in node.children
        if isinstance(child, str) or "data-search-exclude" not in child.attrs
    )


def index(site: Site) -> Iterator[Finding]:
    """The search knows only what the pages say."""
    path = site.built / INDEX
    if not path.is_file():
        return
    pages = {page.file: plain(searched(page.root)) for page in site.pages}
    for entry in json.loads(read(path)).get("docs", []):
        location = entry["location"].partition("#")[0]
        file = site.built / location
        shown = pages.get(file if file.suffix else file / "index.html", "")
        for text in (entry["title"], *TAGS.split(entry["text"])):
            if plain(text) not in shown:
                where = site.relative(path)
                reason = f"{location!r} has {short(text)}, which its page does not show"
                yield Finding(where, 1, reason)
