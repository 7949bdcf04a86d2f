"""Links, anchors, images, and everything that a browser would fetch."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from verified_docs.check.dom import Node
from verified_docs.check.site import Finding, Page, Site

# Links that name another page without fetching it.
QUIET = re.compile(
    r"alternate|author|bookmark|canonical|external|help|license|me|next|"
    r"nofollow|noopener|noreferrer|prev|search|tag|terms-of-service"
)
FETCHED = {
    "audio": ("src",),
    "embed": ("src",),
    "feimage": ("href", "xlink:href"),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href", "imagesrcset"),
    "object": ("data",),
    "script": ("src", "href", "xlink:href"),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
FOREIGN = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
LOCAL_SCHEMES = ("data", "blob", "mailto", "tel", "javascript", "about")

CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CSS_URL = re.compile(
    r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]*))\s*\)"""
    r"""|@import\s+(?:"([^"]*)"|'([^']*)')""",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"""["'`]((?:(?:https?|wss?):)?//[^"'`\s]+)["'`]""")
# What stands before an address where a call or statement fetches it.
FETCHES = re.compile(
    r"""(?:\b(?:import|fetch|importScripts|(?:Shared)?Worker|EventSource|WebSocket"""
    r"""|sendBeacon|addModule|register)\s*\(\s*(?:new\s+URL\s*\(\s*)?"""
    r"""|\b(?:from|import)\s*|\.(?:src|srcset|href)\s*=\s*)$"""
)
JS_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
JS_IMPORT = re.compile(
    r"""(?:^|[;\s])(?:import|export)\b[^"'`;()]*["']([^"']+)["']"""
    r"""|\bimport\(\s*["']([^"']+)["']\s*\)"""
)
NAMESPACES = "http://www.w3.org/"


def check(site: Site) -> Iterator[Finding]:
    """Faults in links, anchors, images, ids and fetched addresses."""
    ids = {page.file: page.ids for page in site.pages}
    seen: set[str] = set()
    for page in site.pages:
        yield from anchors(site, page, ids, seen)
        yield from fetches(site, page)
        yield from images(site, page)
        yield from duplicates(page)
    for path in sorted(site.built.rglob("*.css")):
        yield from stylesheet(site, path)
    for path in sorted(site.built.rglob("*.js")) + sorted(site.built.rglob("*.mjs")):
        yield from script(site, path)


def resolve(site: Site, page: Page, url: str) -> tuple[Path | None, str, str]:
    """The file that a relative address means, its fragment, and what is wrong."""
    parts = urlsplit(url.strip())
    path = unquote(parts.path)
    if path.startswith("/"):
        # MkDocs writes 404.html with absolute addresses: it is served anywhere.
        if page.source is not None or not path.startswith(site.prefix):
            return None, "", "starts with /, which breaks below a sub-path"
        target = site.built / path[len(site.prefix) :]
    else:
        target = page.file if not path else page.file.parent / path
    target = Path(*normal(target))
    if not target.is_relative_to(site.built):
        return None, "", "leaves the site"
    if target.is_dir():
        if path and not path.endswith(("/", ".", "..")):
            return None, "", "is a folder and needs a / at its end"
        target = target / "index.html"
    if not target.is_file():
        return None, "", "leads to no file of the site"
    return target, unquote(parts.fragment), ""


def normal(path: Path) -> list[str]:
    """The parts of a path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return parts


def anchors(
    site: Site, page: Page, ids: dict[Path, dict[str, list[Node]]], seen: set[str]
) -> Iterator[Finding]:
    """Broken internal links and anchors, whoever wrote them.

    Of the theme's links, which all pages have, `seen` lets the first one through.
    """
    article = set(page.article.walk())
    for node in page.nodes:
        if node.tag not in ("a", "area"):
            continue
        url = node.attrs.get("href", node.attrs.get("xlink:href"))
        if not url or FOREIGN.match(url) or urlsplit(url).scheme in LOCAL_SCHEMES:
            continue
        target, fragment, wrong = resolve(site, page, url)
        if target and not (fragment and target in ids and fragment not in ids[target]):
            continue
        if target:
            wrong = f"has no anchor {fragment!r} in {site.relative(target)}"
        if node not in article:
            key = str(Path(*normal(page.file.parent / url)))
            if key in seen:
                continue
            seen.add(key)
        texts = (*as_written(site, page, url), url)
        yield page.fault(node, f"link {url!r} {wrong}", *texts)


def as_written(site: Site, page: Page, url: str) -> Iterator[str]:
    """How a source may have written a link that was built into this address."""
    yield f'"{url}"'
    yield f"'{url}'"
    parts = urlsplit(url)
    if page.source is None:
        return
    target = Path(*normal(page.file.parent / unquote(parts.path)))
    here = (site.root / page.source.path).parent.relative_to(site.docs)
    path = os.path.relpath(target, site.built / here).removesuffix("/index.html")
    for suffix in (".md", ".ipynb", "/index.md"):
        if parts.fragment:
            yield f"{path}{suffix}#{parts.fragment}"
        yield path + suffix
    if parts.fragment:
        yield f"(#{parts.fragment}"
    yield f"({path}"


def addresses(node: Node) -> Iterator[str]:
    """What a browser fetches for this element."""
    if node.tag == "link":
        rel = set(node.attrs.get("rel", "").lower().split())
        if rel and all(map(QUIET.fullmatch, rel)):
            return
    for name in FETCHED.get(node.tag, ()):
        value = node.attrs.get(name, "")
        if name.endswith("srcset"):
            yield from (part.split()[0] for part in value.split(",") if part.strip())
        elif value.strip():
            yield value.strip()
    if node.tag in ("table", "td", "body") and node.attrs.get("background"):
        yield node.attrs["background"]
    if node.attrs.get("ping"):
        yield node.attrs["ping"]
    if node.tag == "base":
        yield node.attrs.get("href", "")
    if node.tag == "meta" and node.attrs.get("http-equiv", "").lower() == "refresh":
        yield node.attrs.get("content", "").partition("=")[2].strip()
    for name in ("style", "fill", "stroke", "filter", "mask", "clip-path"):
        yield from css_addresses(node.attrs.get(name, ""))
    if node.tag == "style":
        yield from css_addresses(node.text())


def css_addresses(text: str) -> Iterator[str]:
    """The addresses in url() and @import."""
    if "url(" in text.lower() or "@import" in text.lower():
        for match in CSS_URL.finditer(CSS_COMMENT.sub("", text)):
            yield next(filter(None, match.groups()), "")


def fetches(site: Site, page: Page) -> Iterator[Finding]:
    """Addresses on other hosts, and files of our own that are not there."""
    for node in page.nodes:
        for url in addresses(node):
            if FOREIGN.match(url):
                yield page.fault(
                    node, f"<{node.tag}> fetches {url!r} from another host", url
                )
            elif url.startswith("#"):
                if node.tag == "use" and url[1:] not in page.ids:
                    yield page.fault(node, f"<use> of {url!r}, which no id has", url)
            elif url and urlsplit(url).scheme not in LOCAL_SCHEMES:
                target, _, wrong = resolve(site, page, url)
                if target is None:
                    yield page.fault(
                        node, f"<{node.tag}> fetches {url!r}, which {wrong}", url
                    )
        if node.tag == "script" and "src" not in node.attrs:
            for match in foreign(node.text(), every=False):
                reason = f"inline script fetches {match[1]!r} from another host"
                yield page.fault(node, reason, match[1])
        if node.tag == "iframe" and FOREIGN.search(node.attrs.get("srcdoc", "")):
            yield page.fault(node, "<iframe srcdoc> names another host", "srcdoc")
        if "mermaid" in node.classes:
            yield page.fault(
                node,
                "Material fetches Mermaid from another host: draw an SVG",
                "mermaid",
            )
        if node.attrs.get("data-md-component") == "source":
            yield page.fault(
                node, "repo_url makes Material fetch the stars from the forge"
            )


def stylesheet(site: Site, path: Path) -> Iterator[Finding]:
    """What a stylesheet fetches."""
    text = path.read_text(encoding="utf-8")
    for match in CSS_URL.finditer(CSS_COMMENT.sub(keep_lines, text)):
        url = next(filter(None, match.groups()), "")
        line = text.count("\n", 0, match.start()) + 1
        if FOREIGN.match(url):
            reason = f"fetches {url!r} from another host"
            yield Finding(origin(site, path), line, reason)
        elif url and not url.startswith(("#", "data:")):
            before = text[: match.start()]
            declaration = before[max(before.rfind(";"), before.rfind("{")) :]
            if "url(" in declaration:  # A format for older browsers.
                continue
            target = Path(*normal(path.parent / unquote(urlsplit(url).path)))
            if not target.is_file():
                reason = f"fetches {url!r}, which leads to no file of the site"
                yield Finding(origin(site, path), line, reason)


def script(site: Site, path: Path) -> Iterator[Finding]:
    """What a script fetches. In our own modules no foreign address is left at all."""
    text = path.read_text(encoding="utf-8")
    source = origin(site, path)
    ours = source != site.relative(path) and "vendor" not in path.parts
    text = JS_COMMENT.sub(keep_lines, text) if ours else text
    for match in foreign(text, every=ours):
        line = text.count("\n", 0, match.start()) + 1
        yield Finding(source, line, f"fetches {match[1]!r} from another host")
    if not ours:
        return
    for match in JS_IMPORT.finditer(text):
        name = next(filter(None, match.groups()))
        if name.startswith(".") and not (path.parent / name).is_file():
            line = text.count("\n", 0, match.end()) + 1
            reason = f"imports {name!r}, which leads to no file of the site"
            yield Finding(source, line, reason)


def foreign(text: str, *, every: bool) -> Iterator[re.Match[str]]:
    """Addresses on other hosts in a script: those that a call fetches, or every one."""
    for match in ADDRESS.finditer(text):
        called = FETCHES.search(text, max(0, match.start() - 80), match.start())
        if called or (every and not match[1].startswith(NAMESPACES)):
            yield match


def origin(site: Site, path: Path) -> str:
    """The file of `docs` that a file of the site was copied from, if it was."""
    copied = site.docs / path.relative_to(site.built)
    return site.relative(copied if copied.is_file() else path)


def keep_lines(match: re.Match[str]) -> str:
    """The newlines of a match: cutting it leaves the line numbers."""
    return "\n" * match[0].count("\n")


def images(site: Site, page: Page) -> Iterator[Finding]:
    """Images that a screen reader cannot name."""
    for node in page.nodes:
        hidden = node.attrs.get("aria-hidden") == "true" or node.attrs.get("role") in (
            "presentation",
            "none",
        )
        if hidden:
            continue
        if node.tag in ("img", "area") or node.attrs.get("type") == "image":
            url = node.attrs.get("src", "")
            texts = (*as_written(site, page, url), url)
            alt = node.attrs.get("alt", "").strip()
            if not alt or alt.startswith("No description has been provided"):
                yield page.fault(node, f"<{node.tag}> has no alt text", *texts)
        elif node.attrs.get("role") == "img" and not name_of(page, node):
            yield page.fault(
                node, f'<{node.tag} role="img"> has no name', *node.written()
            )
        elif (
            node.tag == "svg"
            and page.article in node.ancestors()
            and "role" not in node.attrs
            and any(node.find("text"))
            and not any(n.attrs.get("aria-hidden") == "true" for n in node.ancestors())
        ):
            yield page.fault(
                node, '<svg> is neither role="img" nor hidden', *node.written()
            )


def name_of(page: Page, node: Node) -> str:
    """The accessible name of an image."""
    for name in node.attrs.get("aria-labelledby", "").split():
        if any(target.text().strip() for target in page.ids.get(name, ())):
            return name
    title = next((c for c in node.children if isinstance(c, Node)), None)
    own = title.text() if title is not None and title.tag == "title" else ""
    return node.attrs.get("aria-label", "").strip() or own.strip()


def duplicates(page: Page) -> Iterator[Finding]:
    """Ids that two elements share: links and labels then mean the first."""
    count = Counter(node.attrs["id"] for node in page.nodes if node.attrs.get("id"))
    for name, times in count.items():
        if times > 1:
            second = page.ids[name][1]
            yield page.fault(second, f"{times} elements have the id {name!r}", name)
