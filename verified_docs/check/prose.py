"""What a reader reads: no measurement typed in, nothing left unrendered or unseen."""

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from verified_docs import layout
from verified_docs.check.site import Finding, Page, Site, read, short
from verified_docs.pages.tree import JOINER

GAP = "\N{OBJECT REPLACEMENT CHARACTER}"
INLINE = re.compile(r"a|code|em|span|strong|var")
UNRENDERED = re.compile(
    r"-{1,}8<-{1,}.*"
    r"|\{(?:file|holds|measured|stated):?[^}]*\}?"
    r"|\[(?:start|end|line):\w*\]"
    r"|(?:```|~~~).*"
    r"|^\s*(?:!!!|\?\?\?\+?|===[!+]?)(?=\s).*"
    r"|\{:[^}]*\}?|\{\s*[.#][a-zA-Z][^}]*\}"
    r"|!?\[[^\]]*\]\([^)]*\)"
    r"|\\[(\[].*|\\[)\]]|\$\$.*|(?<![\w$])\$(?=[^\s$])[^$]*[^\s$]\$(?![\w$])"
    r"|\\[a-zA-Z]{2,}",
    re.MULTILINE | re.DOTALL,
)
NUMBER = r"(?<![\w.,^])\d+(?:[.,\u202f]\d+)*(?:e[+-]?\d+)?"
COUNT = (
    r"\b(?i:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|a hundred"
    r"|hundreds of|a thousand|thousands of|many|several)"
)
FASTER = (
    r"(?:as\s+)?(?:fast|slow|quick|long|much time)\w*|quicker|faster|slower|sooner"
    r"|speed-?\s?ups?|(?:more|less|the|better|worse)\s+(?:accurate|time|bandwidth"
    r"|throughput|speed|precise|latency)"
)
TIMES = r"[x\u00d7]"
MEASUREMENT = re.compile(
    rf"{NUMBER}(?:[\s-]{{0,2}}(?:"
    r"(?:[mnu\u00b5\u03bc]s|GHz|MHz)\b"
    r"|(?:milli|micro|nano)?-?sec(?:ond)?s?\b|minutes?\b|hours?\b"
    r"|(?:[a-zA-Z]+\s){0,2}[a-zA-Z]+(?:\s?/\s?s(?:ec|econd)?|\s(?:per|a)\ssec(?:ond)?)\b"
    r"|[kKMGTP]i?[bB](?:its?|ytes?)?ps\b"
    r"|(?:[MGTP]FLOPS|[MTP]FLOPs)\b|(?i:(?:mega|giga|tera|peta)flops?)\b"
    r"|%|per\s?cent\b"
    rf"|(?:times|{TIMES})\s*(?:{FASTER})\b"
    r"|-?fold\b"
    r")"
    r"|\s+s\b(?!['-])"
    rf"|{TIMES}(?![\w\u00d7])(?!\s*\d))"
    rf"|{COUNT}\s+times\s+(?:{FASTER})\b"
    r"|\b(?i:twice|thrice|half|double|an?\s(?:third|quarter|fifth|tenth))"
    rf"\s+(?:{FASTER})\b"
    r"|\b(?:factor|speed-?\s?up)(?:\s+of|:)\s+(?:about\s+)?\d+\.\d+"
    r"|(?<![\d.])0?\.\d+\s+of\s+(?:a|the)\s+(?:copy|product|peak)\b"
    r"|\b(?:off|wrong|differs?)\s+by\s+(?:about\s+)?\d*\.\d+"
    r"|\berrors?(?:\s+in\s+\w+)?"
    r"(?::|\s+(?:of|is|was|are|reaches|stays|about|below|under))"
    r"\s+(?:about\s+|below\s+|under\s+|at most\s+)?\d+(?:\.\d+|(?:\.\d+)?e-?\d+)"
)

# What may be a figure with what stands beside it.
FIGURE = re.compile(rf"\s*{NUMBER}\s*(?:{TIMES}|%)?\s*|{MEASUREMENT.pattern}")
DRAWN = ", ".join(f"div.scroll > svg {tag}" for tag in ("title", "desc", "text"))
HOLDING = ("stated", "console", "claims")  # A source is named, or another rule looks.
UNSEEN = "characters that nobody sees"
HIDDEN = ("Cf", "Cn", "Co", "Zl", "Zp")


def check(site: Site) -> Iterator[Finding]:
    """Faults in the texts of all pages, of the diagrams on them, and of snippets."""
    yield from commented(site)
    for page in site.pages:
        # Of 404.html all that the theme puts around whatever article.
        block = page.article if page.source else page.root.body
        if block is not None:
            told = ":is(a[title], td[data-label]):not([data-made], [data-made] *)"
            attrs = (node.attrs for node in block.css(told))
            titles = (each.sget("title") or each.sget("data-label") for each in attrs)
            tables = block.css("table:not([data-made] *)")
            named = (text for table in tables for text in labelled(site, table))
            for text in (*titles, *named, *texts(site, block)):
                yield from faults(page, text)
            made = block.css("[data-made]")
            for label in block.css(DRAWN):
                yield from faults(page, label.text())
                # A unit alone: the number is another label, or the length of a bar.
                for word in re.findall(r"[^\s,()]{2,}", label.text()):
                    if word != "second" and MEASUREMENT.fullmatch(f"1 {word}"):
                        yield page.fault(typed(word), word)
            for kind, text in filter(None, map(site.stamp, made)):
                # In a formula, or in a title or a heading that a fence is told.
                said = spoken(text) if kind == "tex" else text
                for match in MEASUREMENT.finditer(said if kind not in HOLDING else ""):
                    # "Twice as fast" is what a claim is for; a figure is quoted.
                    if kind != "holds" or re.search(r"\d", match[0]):
                        yield page.fault(typed(match[0]), text)


def commented(site: Site) -> Iterator[Finding]:
    """Measurements in comments and texts of snippets, which pages and demos show."""
    for name, snippet in site.snippets.items():
        readline = io.StringIO(read(snippet.path)).readline
        for token in tokenize.generate_tokens(readline):
            told = token.type in (tokenize.COMMENT, tokenize.STRING)
            words = re.sub(r"\{[^}]*\}", GAP, token.string)  # What a demo computes.
            if told and (match := MEASUREMENT.search(words)):
                file = layout.snippet_file(name)
                yield Finding(file, token.start[0], typed(match[0]))


def faults(page: Page, text: str) -> Iterator[Finding]:
    """What is wrong with a text."""
    if match := UNRENDERED.search(text):
        yield page.fault(f"left unrendered: {short(match[0])}", match[0])
    for match in MEASUREMENT.finditer(text):
        yield page.fault(typed(match[0]), match[0])
    hidden = sorted(set() if text.isascii() else filter(invisible, {*text}))
    if hidden:
        names = ", ".join(unicodedata.name(c, f"U+{ord(c):04X}") for c in hidden)
        yield page.fault(f"{UNSEEN}: {names}", hidden[0])


def spoken(tex: str) -> str:
    """The numbers and units of a formula; x in it is a name, not "times"."""
    return re.sub(r"\\[a-z]+\{|\\.|[{}~x]", " ", tex.replace(r"\%", "%"))


def typed(text: str) -> str:
    """The reason why a figure is refused."""
    ways = "quote a record with {measured: ...} or name its source: {stated: ... | ...}"
    return f"typed-in measurement {short(text)}: {ways}"


def invisible(character: str) -> bool:
    """Does it turn the order of text, join, choose a form, break, or leave no mark?"""
    kind = unicodedata.category(character)
    selects = kind == "Mn" and not unicodedata.combining(character)
    return selects or (kind in HIDDEN and character != JOINER)


def texts(site: Site, block: LexborNode) -> Iterator[str]:
    """The text of a block and of each block in it, where one has words of its own."""
    inner: list[LexborNode] = []
    own = "".join(words(site, block, inner))
    if own.strip(GAP + " \n\t"):
        yield own
    for each in inner:
        yield from texts(site, each)


def labelled(site: Site, table: LexborNode) -> Iterator[str]:
    """Each number in a table with each word that its column or its row is called."""
    head, *rows = (
        ["".join(words(site, cell, [])) for cell in row.iter()]
        for row in table.css("tr")
    )
    for row in rows:
        for name, cell in zip(head, row, strict=False):
            if FIGURE.fullmatch(cell):
                called = re.findall(r"[^\s,()]+", f"{name} {row[0]}")
                yield from (f"{cell} {word}" for word in called)


def words(site: Site, node: LexborNode, inner: list[LexborNode]) -> Iterator[str]:
    """The words of a block; the blocks in it join `inner`.

    They leave a gap, as do code and what the machinery made; but what is a figure and
    no more is read.
    """
    for child in node.iter(include_text=True):
        if child.is_text_node:
            yield child.text()
        elif child.tag == "code" or site.stamp(child):
            kind, text = site.stamp(child) or ("code", child.text())
            shown = spoken(text.replace(r"\times", "\u00d7")) if kind == "tex" else text
            figure = kind != "holds" and FIGURE.fullmatch(shown)
            yield shown if figure else GAP
        elif INLINE.fullmatch(str(child.tag)):
            yield from words(site, child, inner)
        elif child.tag not in ("script", "style"):
            inner.append(child)
            yield GAP
