"""What may stand in an article: a few elements, and what the machinery made.

Whatever holds code, a figure or a state of verification is made by the extension, and
is marked, see pages/made.py. Everything else comes from a short list of elements,
attributes and classes.
"""

import ast
import re
import textwrap
from collections.abc import Iterator

from selectolax.lexbor import LexborNode as Node

from verified_docs.check import commands
from verified_docs.check.prose import INLINE, words
from verified_docs.check.site import Finding, Page, Site, Weight, short

# The elements that Markdown writes, and the attributes of each.
PLAIN = (
    "article blockquote code dd dl dt em h1 h2 h3 h4 hr li p span strong summary "
    "table tbody thead tr ul"
)
ELEMENTS = dict.fromkeys(PLAIN.split(), "") | {
    "a": "href|title",
    "details": "open",
    "div": "data-search-exclude|data-tabs",
    "input": "checked|name|type",
    "label": "for",
    "ol": "start",
    "td": "style|data-label",
    "th": "style",
    "var": "data-search-exclude",
}
COMMON = "class|data-line|id"
CLASSES = re.compile(
    "abstract|bug|danger|example|failure|info|note|question|quote|success|tip|warning"
    r"|admonition|admonition-title|headerlink|math"
    r"|md-button(--primary)?|md-content__inner|md-typeset"
    r"|quiet|t-[a-z]+|tabbed-(alternate|block|content|labels|set)|term"
)
# Of a cell: its column's side.
STYLE = re.compile(r"text-align: (left|right|center);")
NAME = re.compile(r"[\w\\.,()\[\] ]+")
# What quotes records, and how it says that they are out of date.
QUOTING = ("measured", "holds", "output", "plot", "heatmap", "timeline", "measurements")
STALE = re.compile(r"\(stale|, stale")
# Links that the machinery makes, so that their words are those of the file.
MADE_OF = re.compile(r"(\.\./)*(notebooks|records|snippets|zips)/.*")
KERNEL = re.compile(r"kernel=(\S+\.py)")
# What only the machinery makes, and only in articles.
SHOWING = "body :is(pre, figure, .badge, .measured)"
NOTHING = "is nothing that a page may hold"
ERROR = re.compile(r"(?:error|bound) \S+ (b?float(?:16|32|64)).*")
DTYPE = re.compile(r"\b(b?)f(?:loat|p)?(16|32|64)\b")
TYPEWRITER = re.compile(r"\\(?:texttt|mathtt)\{([^}]*)\}|\\(?:verb|tt)\b")


def check(site: Site) -> Iterator[Finding]:
    """Faults in the articles of all pages."""
    for page in site.pages:
        if page.article:
            yield from visit(site, page, page.article)
            yield from rows(site, page, page.article)
            yield from dtypes(site, page, page.article)
        for node in page.root.css(SHOWING):
            # On 404.html is all that the theme puts around whatever article.
            if not (page.source or closest(node, "article")):
                yield page.fault(f"<{node.tag}> outside the article {NOTHING}")
        if page.article and page.source:
            made = page.root.css("[data-made]")
            ends = [node.parent for node in made if site.stamp(node) == ("end", "")]
            if ends != [page.article]:
                yield page.fault("it does not end in the article in which it begins")


def visit(site: Site, page: Page, node: Node) -> Iterator[Finding]:
    """A node of an article and those below it; below a fault no more are told."""
    if stamp := site.stamp(node):
        yield from made(site, page, node, *stamp)
        return
    if wrong := foreign(node):
        yield page.fault(f"{wrong} {NOTHING}", node.text())
        return
    if node.tag == "code":
        yield from inline(site, page, node)
    for child in node.iter():
        yield from visit(site, page, child)


def foreign(node: Node) -> str:
    """What of a node is on no list, else ""."""
    tag = str(node.tag)
    if tag not in ELEMENTS:
        return f"<{tag}>"
    allowed = f"{COMMON}|{ELEMENTS[tag]}".split("|")
    for name, value in node.attributes.items():
        styled = name == "style" and not STYLE.fullmatch(value or "")
        if name not in allowed or styled:
            return f"the attribute {name}={(value or '')[:40]!r} of <{tag}>"
    for name in node.attrs.sget("class").split():
        if not CLASSES.fullmatch(name):
            return f"the class {name!r} of <{tag}>"
    if tag == "a" and MADE_OF.fullmatch(node.attrs.sget("href")):
        return "a link to a file that {file: ...} or a fence may offer"
    return ""


def rows(site: Site, page: Page, article: Node) -> Iterator[Finding]:
    """A row of a table that hands out a file quotes no figure of another."""
    for row in article.css("tr"):
        stamps = [*filter(None, map(site.stamp, row.css("[data-made]")))]
        files = {
            text.partition("|")[0].strip() for kind, text in stamps if kind == "file"
        }
        for kind, text in stamps:
            kernel = KERNEL.search(text) if kind == "measured" and files else None
            if kernel and kernel[1] not in files:
                yield page.fault(
                    f"{short(text)} in the row of {', '.join(files)}", text
                )


def dtypes(site: Site, page: Page, article: Node) -> Iterator[Finding]:
    """An error is of a dtype that the words beside it name, if they name one.

    They are those of its paragraph, or of its column and its row. Errors are against
    float64, so that alone names none.
    """
    for node in article.css(".measured"):
        _, text = site.stamp(node) or ("", "")
        named = {f"{m[1]}float{m[2]}" for m in DTYPE.finditer(beside(node))}
        match = ERROR.fullmatch(text) if named - {"float64"} else None
        if match and match[1] not in named:
            told = ", ".join(sorted(named))
            yield page.fault(f"{short(text)} beside the words {told}", text)


def beside(node: Node) -> str:
    """The words of the paragraph of a node, or of its column and its row."""
    near = closest(node, "td", "p", "li", "article") or node
    table = closest(near, "table")
    if near.tag != "td" or not (near.parent and table):
        return near.text()
    cells = [*near.parent.iter()]
    heads = zip(table.css("tr")[0].iter(), cells, strict=False)
    own = (head.text() for head, cell in heads if cell.mem_id == near.mem_id)
    return " ".join([*own, cells[0].text()])


def closest(node: Node | None, *tags: str) -> Node | None:
    """The node, or the nearest around it, that is one of these elements."""
    while node and node.tag not in tags:
        node = node.parent
    return node


def made(site: Site, page: Page, node: Node, kind: str, text: str) -> Iterator[Finding]:
    """An element that the machinery made shows its file, and a record of now."""
    what = f"{kind} {short(text)}"
    if kind == "tex":
        for match in TYPEWRITER.finditer(text):
            if not NAME.fullmatch(match[1] or ""):
                yield page.fault(f"code in a formula: {short(match[0])}", match[0])
    if kind == "python" and lines(code(node)) != extract(site, text):
        yield page.fault(f"{what} is not the section in its file", text)
    if kind == "console":
        for line, reason in commands.faults(site, code(node)):
            yield page.fault(reason, line)
    if node.css_first(".unmeasured, .no-record"):
        yield page.fault(f"{what} is not yet measured", text, Weight.RECORD)
    elif kind == "holds" and "(false)" in node.text():
        # On another GPU than the site's it need not hold, and is not published.
        weight = Weight.RECORD if node.css_first("small") else Weight.FAULT
        yield page.fault(node.attrs.sget("title") or what, f"holds: {text}", weight)
    elif kind in QUOTING and STALE.search(node.text()):
        yield page.fault(f"{what} is stale", text, Weight.RECORD)
    elif node.attrs.sget("data-record") == "interpreter":
        yield page.fault(f"{what} is that of the interpreter", text, Weight.RECORD)


def code(node: Node) -> str:
    """The preformatted text of a block."""
    return "".join(pre.text() for pre in node.css("pre"))


def lines(text: str) -> list[str]:
    """Its lines, less those that are blank and the markers, with no common margin."""
    kept = [each for each in text.split("\n") if each.strip() and "--8<--" not in each]
    return textwrap.dedent("\n".join(kept)).split("\n")


def extract(site: Site, include: str) -> list[str]:
    """The lines of an include, read here once more, apart from what builds the page."""
    name, _, section = include.partition('"')[2].partition('"')[0].partition(":")
    text = (site.root / "snippets" / name).read_text("utf-8")
    if section:
        text = text.partition(f"# --8<-- [start:{section}]")[2].partition("\n")[2]
        text = text.partition(f"# --8<-- [end:{section}]")[0].rpartition("\n")[0]
    return lines(text)


def inline(site: Site, page: Page, node: Node) -> Iterator[Finding]:
    """Code in a line of text is short, and a statement has a sentence around it."""
    text = node.text()
    if "\n" in text:
        yield page.fault(f"inline code of several lines: {short(text)}", text)
    block = node
    while block.parent and (block == node or INLINE.fullmatch(str(block.tag))):
        block = block.parent
    around = "".join(words(site, block, []))
    if statement(text) and not any(map(str.isalnum, around)):
        reason = f"a line of a listing, {short(text)}: code comes from snippets"
        yield page.fault(reason, text)


def statement(text: str) -> bool:
    """Is it Python, and more than a name or an expression?"""
    for candidate in (text, f"{text} pass", f"{text}\ndef f(): pass"):
        try:
            body = ast.parse(candidate).body
        except (SyntaxError, ValueError):
            continue
        return any(not isinstance(line, ast.Expr) for line in body)
    return False
