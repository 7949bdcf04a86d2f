"""The Python-Markdown extension: fences, figures and formulas of verified pages.

It loads pymdownx.superfences and takes every fence over, in whatever list, tab,
admonition or quote it stands. Code that no fence of these holds, an indented block for
instance, is nothing that a page may hold: the check refuses it.
"""

import functools
import json
import os
import re
from pathlib import Path
from typing import Any, NoReturn

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import HTML_RE, InlineProcessor
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

from verified_docs.evidence.status import Evidence
from verified_docs.pages import blocks, claims, figures
from verified_docs.pages.errors import PageError
from verified_docs.pages.ladder import Navigation
from verified_docs.pages.made import END, marked
from verified_docs.pages.math import TexTreeprocessor
from verified_docs.pages.opening import Opening
from verified_docs.pages.site import OfSite, Site, base
from verified_docs.pages.style import Style
from verified_docs.pages.terms import Terms
from verified_docs.pages.tree import Tables

# Or a code span, in which none is meant.
DIRECTIVE = re.compile(
    r"(?<![\\`])(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)"
    r"|\{(file|holds|measured|stated):([^{}\n]*)\}",
    re.DOTALL,
)
Options = dict[str, str]
# attr_list wants the name of a step's line of code below the step, not at its end.
STEP = re.compile(r'^( *)(.*\S) *(\{: *data-line="[^"]*" *\}) *$', re.MULTILINE)


class VerifiedDocs(Extension):
    """See the module. The options are described where they are declared."""

    def __init__(self, **options: Any) -> None:
        self.config = {
            "root": [".", "the repository; everything else has its place below it"],
            "gpu": ["", "the folder in records/ whose figures the prose quotes"],
            "evidence": ["", "all of it, where a build reads it once for all pages"],
            "mark": ["", "the secret word of the check, see made.py"],
            "published": ["", "the commit whose run publishes the site"],
            "repository": ["", "where it is public, for example on GitHub"],
            "nav": [[], "the navigation: parts, each of titles and pages"],
            "goal": ["", "the page to which the short way of the ladder leads"],
            "everyday": [[], "words of the glossaries that only authors link"],
            "tensors": [{}, "class: {macro, tex, code: [identifiers]}"],
            "plots": [{}, "kernels: {name: [colour, marker]}, axes: {key: words}"],
        }
        super().__init__(**options)

    def extendMarkdown(self, md: Markdown) -> None:
        """Register everything. Raises ValueError for options that contradict."""
        root = Path(os.fspath(self.getConfig("root")))
        macros, identifiers = tensors(self.getConfig("tensors"))
        evidence = self.getConfig("evidence") or Evidence(root, self.getConfig("gpu"))
        nav, goal = self.getConfig("nav"), self.getConfig("goal")
        self.site = Site(
            evidence,
            Navigation(root / "docs", nav, goal),
            self.getConfig("published"),
            frozenset(identifiers.items()),
            self.getConfig("repository"),
            Style(**self.getConfig("plots")),
            self.getConfig("mark"),
            self.getConfig("everyday"),
        )
        fence = {
            "name": "*",
            "class": "",
            "format": functools.partial(render_fence, self.site),
            "validator": keep_options,
        }
        name = "pymdownx.superfences"
        md.registerExtensions([name], {name: {"custom_fences": [fence]}})
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.register(Html(HTML_RE, md), "html", 90)
        md.block_level_elements.append("verified-replay")
        md.registerExtension(self)
        # After fences (25).
        md.preprocessors.register(Directives(md, self.site), "verified-directives", 24)
        md.treeprocessors.register(Tables(md), "verified-tables", 10)
        formulas = TexTreeprocessor(md, json.dumps(macros), self.site.mark)
        md.treeprocessors.register(formulas, "verified-tex", 6)
        md.treeprocessors.register(Terms(md, self.site), "verified-terms", 5)
        md.treeprocessors.register(Opening(md, self.site), "verified-opening", 4)
        md.postprocessors.register(End(md, self.site), "verified-end", -1)

    def reset(self) -> None:
        """Start a new page."""
        self.site.badged.clear()
        self.site.claims.clear()


def tensors(table: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The TeX macros and the classes of identifiers of the option `tensors`."""
    macros: dict[str, str] = {}
    identifiers: dict[str, str] = {}
    for name, tensor in table.items():
        if "macro" in tensor:
            macros[tensor["macro"]] = rf"\class{{t-{name}}}{{{tensor['tex']}}}"
        for identifier in tensor.get("code", ()):
            if identifier in identifiers:
                raise ValueError(f"tensors: {identifier!r} is of two tensors")
            identifiers[identifier] = f"t-{name}"
    return macros, identifiers


def keep_options(language: str, inputs: Options, options: Options, *_: Any) -> bool:
    """A validator for superfences that leaves judgement to the formatter."""
    options.update(inputs)
    return True


def render_fence(
    site: Site, src: str, language: str, _: str, given: Options, md: Markdown, **__: Any
) -> str:
    """A formatter for superfences. Raises PageError."""
    site.base = base(md)
    try:
        html = blocks.render(site, language or "", src, given)
        return marked(html, site.mark, language, src, dict(given))
    except Exception as error:
        head = " ".join([language or "", *map(str, given.values())])
        why = f"there is no {error}" if isinstance(error, KeyError) else error
        raise PageError(f"```{head}, {src.strip()[:60]!r}: {why}") from error


class Directives(OfSite, Preprocessor):
    """{file: ...}, {holds: ...} and the like, before a | ends a cell.

    Whoever lights a line of code is told below its step, where attr_list wants it.
    """

    def run(self, lines: list[str]) -> list[str]:
        """The lines with what a postprocessor replaces. Raises PageError."""
        self.site.base = base(self.md)
        ended = STEP.sub(r"\1\2\n\1\3", "\n".join(lines))
        text = DIRECTIVE.sub(self.replaced, ended)
        said = {m[3].strip() for m in DIRECTIVE.finditer(ended) if m[2] == "holds"}
        if spare := self.site.claims.keys() - said:
            raise PageError(f"```claims: no {{holds: {min(spare)}}} is on the page")
        return text.split("\n")

    def replaced(self, match: re.Match[str]) -> str:
        """What stands for a directive; a code span stays as it is."""
        _, kind, text = match.groups()
        if not kind:
            return match[0]
        text = text.strip()
        try:
            if kind == "measured":
                html = figures.measured(self.site.evidence, text)
            elif kind == "holds":
                html = claims.holds(self.site.claims, text)
            elif kind == "file":
                html = blocks.taken(self.site, text)
            else:
                html = figures.stated(text, self.site.works, self.site.base)
        except Exception as error:
            raise PageError(f"{{{kind}: {text}}}: {error}") from error
        return self.md.htmlStash.store(marked(html, self.site.mark, kind, text))


class Html(InlineProcessor):
    """HTML that an author types: a page is what Markdown can say, and no more."""

    def handleMatch(self, m: re.Match[str], data: str) -> NoReturn:  # type: ignore[override]
        """Raise PageError."""
        raise PageError(f"a page holds no HTML, such as {m[0][:60]!r}")


class End(OfSite, Postprocessor):
    """Ends the page with an element that nobody sees: up to there it is an author's."""

    def run(self, text: str) -> str:
        """The page and its end."""
        return f"{text}\n{marked(END, self.site.mark, 'end', '')}"


def makeExtension(**options: Any) -> VerifiedDocs:
    """What Python-Markdown calls."""
    return VerifiedDocs(**options)
