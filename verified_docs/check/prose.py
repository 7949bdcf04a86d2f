"""What a reader reads: no measurement typed in, nothing left unrendered or unseen."""

import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from verified_docs.check.site import Finding, Page, Site, Source, short

GAP = "\N{OBJECT REPLACEMENT CHARACTER}"
INLINE = re.compile(r"a|abbr|b|code|data|del|em|i|ins|kbd|span|strong|sub|sup|u|var")
JOINER = "\N{WORD JOINER}"  # What pages/tree.py gives a header that is a formula.
UNRENDERED = re.compile(
    r"-{1,}8<-{1,}.*"
    r"|\{(?:file|measured|stated):?[^}]*\}?"
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
    r"|[kKMGTP]?i?(?:B|bytes?|[bB]its?|FLOPs?|flops?)"
    r"(?:\s?/\s?s(?:ec|econd)?\b|\s(?:per|a)\ssec(?:ond)?\b|ps\b)"
    r"|(?:[MGTP]FLOPS|[MTP]FLOPs)\b|(?i:(?:mega|giga|tera|peta)flops?)\b"
    r"|(?:kilo|mega|giga|tera|peta)bytes?\s(?:per|a)\ssecond"
    r"|%|per\s?cent\b"
    rf"|(?:times|{TIMES})\s*(?:{FASTER})\b"
    r"|-?fold\b"
    r")"
    r"|\s+s\b(?!['-])"
    rf"|{TIMES}(?![\w\u00d7])(?!\s*\d))"
    rf"|{COUNT}\s+times\s+(?:{FASTER})\b"
    rf"|\b(?i:twice|half|double)\s+(?:{FASTER})\b"
    r"|\b(?:off|wrong|differs?)\s+by\s+(?:about\s+)?\d*\.\d+"
    r"|\berrors?\s+(?:of|is|was|are|reaches|stays|about|below|under)"
    r"\s+(?:about\s+|below\s+|under\s+|at most\s+)?\d+(?:\.\d+|(?:\.\d+)?e-?\d+)"
)

# What may be a figure with what stands beside it.
FIGURE = re.compile(rf"\s*{NUMBER}\s*(?:{TIMES}|%)?\s*|{MEASUREMENT.pattern}")
HOLDING = ("stated", "tex", "console")  # A source is named, or another rule looks.
UNSEEN = "characters that nobody sees"
# What a diagram is made of. It brings neither a font nor a script nor a document.
SHAPES = re.compile(
    "svg|title|desc|defs|pattern|g|rect|circle|line|path|polygon|text|tspan"
)
SHAPED = re.compile(
    r"(?:class|c[xy]|d|dy|fill|(?:fill|stroke)-opacity|font-(?:style|weight)|height"
    r"|id|patternUnits|points|rx?|stroke-(?:dasharray|width)|text-anchor|transform"
    r"|viewBox|width|[xy][12]?)=.*"
    r"|font-size=(?:1[3-9]|[2-9]\d)",  # In units of a viewBox made for a phone.
    re.DOTALL,
)
INK = re.compile("accent|ink|line|soft|stroke|t-[a-z]+|warn")
WORDS = ("title", "desc", "text")


def check(site: Site) -> Iterator[Finding]:
    """Faults in the texts of all pages and diagrams."""
    for page in site.pages:
        # Of 404.html all that the theme puts around whatever article.
        block = page.article if page.source else page.root.body
        if block is not None:
            links = block.css("a[title]:not([data-made], [data-made] *)")
            titles = (link.attrs.sget("title") for link in links)
            tables = block.css("table:not([data-made] *)")
            named = (text for table in tables for text in labelled(site, table))
            for text in (*titles, *named, *texts(site, block)):
                yield from faults(page, text)
            made = block.css("[data-made]")
            for kind, text in filter(None, map(site.stamp, made)):
                match = MEASUREMENT.search(text) if kind not in HOLDING else None
                if match:  # In a title or a heading that a fence is told.
                    yield page.fault(typed(match[0]), match[0])
            for node in block.css("annotation"):
                for match in MEASUREMENT.finditer(spoken(node.text())):
                    yield page.fault(typed(match[0]), node.text())
    for path in sorted(site.docs.rglob("*.svg")):
        yield from drawing(site.relative(path), path.read_text(encoding="utf-8"))


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
    """Does it turn the order of text, join, choose a form, or leave no mark?"""
    kind = unicodedata.category(character)
    selects = kind == "Mn" and not unicodedata.combining(character)
    return selects or (kind in ("Cf", "Co", "Cn") and character != JOINER)


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
            yield shown if FIGURE.fullmatch(shown) else GAP
        elif INLINE.fullmatch(str(child.tag)):
            yield from words(site, child, inner)
        elif child.tag not in ("script", "style"):
            inner.append(child)
            yield GAP


def drawing(path: str, text: str) -> Iterator[Finding]:
    """Measurements, formulas and typewriter text in a diagram."""
    source = Source(path, text)
    try:
        elements = list(ET.fromstring(text).iter())
    except ET.ParseError as error:
        yield Finding(path, error.position[0], f"not XML: {error}")
        return
    for element in elements:
        tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
        attributes = [f"{name}={value}" for name, value in element.items()]
        if not (
            SHAPES.fullmatch(tag)
            and all(map(SHAPED.fullmatch, attributes))
            and all(map(INK.fullmatch, element.get("class", "").split()))
        ):
            told = short(" ".join([tag, *attributes]))
            reason = f"nothing that a diagram may hold: {told}"
            yield Finding(path, source.line_of(f"<{tag}"), reason)
        words = "".join(element.itertext()) if tag in WORDS else ""
        if match := MEASUREMENT.search(words):
            yield Finding(path, source.line_of(words), typed(match[0]))
        if match := UNRENDERED.search(words):
            reason = f"left unrendered: {short(match[0])}"
            yield Finding(path, source.line_of(words), reason)
        if any(map(invisible, words)):
            yield Finding(path, source.line_of(words), UNSEEN)
