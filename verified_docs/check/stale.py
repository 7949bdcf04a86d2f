"""Is the built site that of the present sources? Texts are compared, not dates."""

import json
import re
from collections.abc import Iterator

from verified_docs.check.prose import SILENT, SOURCED, attributes, short
from verified_docs.check.site import Finding, Page, Site, Source, squeeze

# What stands in a page and not in its source, and the reverse.
MADE = (*SILENT, *SOURCED, ".snippet", "svg", ".headerlink", ".footnote-backref")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
FENCE = re.compile(r"^([ \t>]*(?:[-*+]|\d+\.)?[ \t>]*)(`{3,}|~{3,})")
NOT_SHOWN = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"<(script|style|svg|pre)\b.*?</\1>", re.DOTALL | re.IGNORECASE),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"(?<![\\$])\$[^$]+\$"),
    re.compile(r"\\[(\[].*?\\[)\]]", re.DOTALL),
    re.compile(r"\]\([^)]*\)|\]\[[^\]]*\]|\[\^[^\]]*\]"),
    re.compile(r"</?[a-zA-Z][^>]*>|<[^>\s]+[:@][^>]*>"),
    re.compile(r"\{[^}]*\}"),
    re.compile(r"^[ \t>]*(?:!!!|\?\?\?\+?|===[!+]?)[^\"\n]*", re.MULTILINE),
    re.compile(r"^[ ]{0,3}\[[^\]]*\]:.*|^\*\[[^\]]*\]:", re.MULTILINE),
    re.compile(r"(?<!\w):[a-z][\w-]*:(?!\w)"),
    re.compile(r"&\w+;|&#\w+;|\\."),
)
ITEM = re.compile(r"^[ \t>]*(?:[-*+:]|\d+[.)])[ \t]+")
PLAIN = re.compile(r"[^\[\]`*_|#<>\"(){}~=^]+")


def check(site: Site) -> Iterator[Finding]:
    """One finding for each page that is not that of its source."""
    targets = {site.target(name): source for name, source in site.sources.items()}
    built = {page.file: page for page in site.pages}
    for path, source in targets.items():
        if path not in built:
            reason = "the built site lacks this page; run `make site`"
            yield Finding(source.path, 1, reason)
        else:
            yield from compare(built[path], source)
    for page in site.pages:
        # The theme's own pages, such as 404.html, lie at the top.
        if page.source is None and page.file.parent != site.built:
            reason = "this page has no source any more; run `make site`"
            yield Finding(page.path, 1, reason)


def compare(page: Page, source: Source) -> Iterator[Finding]:
    """The first text of the source that the page lacks, or of the page."""
    shown = squeeze("".join(text for _, text in page.root.texts()))
    shown += squeeze("".join(block.text for block in attributes(page.root)))
    for text in written(source):
        if squeeze(text) not in shown:
            reason = f"the built page does not have {short(text)}; run `make site`"
            yield Finding(source.path, source.line_of(text) or 1, reason)
            return
    letters, _ = source.squeezed
    for node, text in page.article.texts(*MADE):
        if squeeze(text) not in letters:
            reason = f"the source does not have {short(text)}; run `make site`"
            yield Finding(page.path, node.line, reason)
            return


def written(source: Source) -> Iterator[str]:
    """Plain runs of text that the page must show, in order."""
    text = source.text
    if source.path.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        markdown = [c["source"] for c in cells if c["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell) for cell in markdown)
    text = "\n".join(unfenced(FRONT_MATTER.sub("", text).split("\n")))
    for pattern in NOT_SHOWN:
        text = pattern.sub(" | ", text)
    for line in text.split("\n"):
        yield from filter(squeeze, PLAIN.findall(ITEM.sub("", line)))


def unfenced(lines: list[str]) -> Iterator[str]:
    """The lines outside code fences."""
    fence = ""
    for line in lines:
        match = FENCE.match(line)
        if fence:
            if line.strip("> \t").startswith(fence):
                fence = ""
        elif match:
            fence = match[2]
        else:
            yield line
