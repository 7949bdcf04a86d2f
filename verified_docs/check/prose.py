"""What a reader reads: unrendered mathematics and directives, typed-in measurements."""

import re
from collections.abc import Iterator

from verified_docs.check.dom import Node
from verified_docs.check.site import GAP, Block, Finding, Page, Site

INLINE = re.compile(
    r"a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|"
    r"kbd|label|mark|math|q|s|samp|small|span|strong|sub|sup|time|"
    r"tspan|u|var|wbr"
)
# Not prose: code, rendered mathematics, and figures that name their source.
# (".measured" and its like are verified elsewhere, against the records.)
SILENT = ("code", "pre", "script", "style", "math", ".katex")
SOURCED = (
    ".measured",
    ".stated",
    ".unmeasured",
    ".badge",
    ".facts",
    ".verification",
    ".measurements",
    ".plot",
    ".cell-output",
    ".no-record",
    ".verified-summary",
)
MATH = re.compile(
    r"\\[(\[].*|\\[)\]]|\$\$.*|(?<![\w$])\$(?=[^\s$])[^$]*[^\s$]\$(?![\w$])|\\[a-zA-Z]{2,}",
    re.DOTALL,
)
DIRECTIVE = re.compile(
    r"-{1,}8<-{1,}.*"
    r"|\{(?:measured|stated|verified):?[^}]*\}?"
    r"|\[(?:start|end|line):\w*\]"
    r"|(?:```|~~~).*"
    r"|^\s*(?:!!!|\?\?\?\+?|===[!+]?)(?=\s).*"
    r"|\{:[^}]*\}?|\{\s*[.#][a-zA-Z][^}]*\}"
    r"|!?\[[^\]]*\]\([^)]*\)"
    r"|\[TOC\]",
    re.MULTILINE,
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
    r"|(?:milli|micro|nano)?-?seconds?\b|minutes?\b"
    r"|[kKMGTP]?i?(?:B|bytes?|[bB]its?|FLOPs?|flops?)"
    r"(?:\s?/\s?s\b|\s(?:per|a)\ssecond)"
    r"|[MGTP]FLOPS\b|(?:mega|giga|tera|peta)flops?\b"
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
WORDS = ("alt", "title", "aria-label", "content", "placeholder", "summary", "label")
SHORT = 70


def check(site: Site) -> Iterator[Finding]:
    """Faults in the text of every page that has a source."""
    for page in site.pages:
        if page.source is not None:
            yield from unrendered(page)
            yield from figures(page)


def blocks(root: Node, *silent: str) -> Iterator[Block]:
    """The text in reading order, each of its silent parts replaced by a gap."""
    tags = {name for name in silent if not name.startswith(".")}
    classes = {name[1:] for name in silent if name.startswith(".")}
    parts: list[str] = []
    first = root

    def flush() -> Iterator[Block]:
        text = "".join(parts)
        if text.strip(GAP + " \n\t"):
            yield Block(first, text)
        parts.clear()

    def visit(node: Node) -> Iterator[Block]:
        nonlocal first
        if node.tag in tags or not classes.isdisjoint(node.classes):
            parts.append(GAP)
            return
        inline = INLINE.fullmatch(node.tag)
        if not inline:
            yield from flush()
        for child in node.children:
            if isinstance(child, Node):
                yield from visit(child)
            else:
                if not parts:
                    first = node
                parts.append(child)
        if node.tag == "br":
            parts.append("\n")
        if not inline:
            yield from flush()

    yield from visit(root)
    yield from flush()


def attributes(root: Node, *silent: str) -> Iterator[Block]:
    """What a screen reader says or a pointer shows, from attributes."""
    for node in root.walk():
        texts = [node.attrs[name] for name in WORDS if node.attrs.get(name)]
        if texts and not node.within(*silent):
            for text in texts:
                yield Block(node, text)


def unrendered(page: Page) -> Iterator[Finding]:
    """Mathematics and directives that reached the reader as they were typed."""
    for node in page.nodes:
        if "katex-error" in node.classes or node.tag == "merror":
            tex = next((n.text() for n in node.find("annotation")), node.text())
            yield page.fault(node, f"KaTeX refused {short(tex)}", tex)
        elif node.tag == "h1" and any("math" in n.classes for n in node.walk()):
            yield page.fault(node, "TeX in a page title", node.text())
    for block in [*blocks(page.root, *SILENT), *attributes(page.root, *SILENT)]:
        if match := DIRECTIVE.search(block.text):
            reason = f"directive printed literally: {short(match[0])}"
            yield page.fault_in(block, match, reason)
        elif match := MATH.search(block.text):
            reason = f"mathematics did not render: {short(match[0])}"
            yield page.fault_in(block, match, reason)


def figures(page: Page) -> Iterator[Finding]:
    """Measurements that come from no record and name no source."""
    silent = SILENT + SOURCED
    described = [n for n in page.nodes if n.attrs.get("name") == "description"]
    texts = [*blocks(page.article, *silent), *attributes(page.article, *silent)]
    texts += [Block(node, node.attrs.get("content", "")) for node in described]
    for block in texts:
        for match in MEASUREMENT.finditer(block.text):
            reason = (
                f"typed-in measurement {short(match[0])}: quote a record with "
                "{measured: ...} or name its source with {stated: ... | ...}"
            )
            yield page.fault_in(block, match, reason)


def short(text: str) -> str:
    """The text on one line, quoted, cut where it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= SHORT else line[: SHORT - 1] + "…")
