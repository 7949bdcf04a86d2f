"""The Python-Markdown extension: fences, figures and formulas of verified pages.

It loads pymdownx.superfences and takes every fence over, so that code that comes from
no snippet fails the build, in whatever list, tab, admonition or quote it stands.
"""

import functools
import os
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.extensions.toc import slugify
from markdown.inlinepatterns import InlineProcessor
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from pymdownx.superfences import SuperFencesCodeExtension

from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures, inputs
from verified_docs.pages.errors import PageError
from verified_docs.pages.math import Tex, TexTreeprocessor
from verified_docs.pages.site import Site
from verified_docs.pages.tree import Headers, NoIndentedCode, Steps

DIRECTIVE = r"\{(measured|stated|verified):([^{}\n]*)\}"
PIPE = "\ue000"  # Private use: it keeps a directive's | from ending a table cell.
FENCE = re.compile(r"(?:[ \t>]|[-*+] |\d+[.)] )*(`{3,}|~{3,})")


class VerifiedDocs(Extension):
    """See the module. The options are described where they are declared."""

    def __init__(self, **options: Any) -> None:
        self.config = {
            "root": [".", "the repository; everything else has its place below it"],
            "gpu": ["", "the folder in records/ whose figures the prose quotes"],
            "published": ["", "the commit whose run publishes the site"],
            "nav": [[], "the navigation: parts, each of titles and pages"],
            "katex": ["node_modules/katex", "the npm package, relative to the root"],
            "tensors": [{}, "class: {macro, tex, code: [identifiers]}"],
        }
        super().__init__(**options)

    def extendMarkdown(self, md: Markdown) -> None:
        """Register everything. Raises ValueError for options that contradict."""
        root = Path(os.fspath(self.getConfig("root")))
        macros, identifiers = tensors(self.getConfig("tensors"))
        evidence = Evidence(root, self.getConfig("gpu"))
        published, nav = self.getConfig("published"), self.getConfig("nav")
        self.site = Site(evidence, published, identifiers, nav)
        self.superfences = superfences(md)
        self.superfences.extend_super_fences(
            "*", functools.partial(render_fence, self.site), keep_options, None
        )
        md.block_level_elements.append("verified-replay")
        self.tex = Tex(root / self.getConfig("katex"), macros)
        md.registerExtension(self)
        md.preprocessors.register(Before(md, self), "verified-before", 26)
        md.preprocessors.register(After(md), "verified-after", 24)
        # After code spans (190), before TeX would see a $ and backslashes escape.
        inline = Directive(DIRECTIVE, md, self.site)
        md.inlinePatterns.register(inline, "verified-directive", 189.95)
        md.treeprocessors.register(NoIndentedCode(md), "verified-indented", 31)
        md.treeprocessors.register(Headers(md), "verified-headers", 10)
        md.treeprocessors.register(Steps(md), "verified-steps", 9)
        formulas = TexTreeprocessor(md, self.tex)
        md.treeprocessors.register(formulas, "verified-tex", 6)
        md.postprocessors.register(Pipes(md), "verified-pipes", 0)
        source = inputs.Source(md)
        md.preprocessors.register(source, "verified-source", 1000)
        md.postprocessors.register(inputs.Stamp(md, source), "verified-stamp", -1)

    def reset(self) -> None:
        """Start a new page."""
        self.site.count = 0


def tensors(table: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The TeX macros and the classes of identifiers of the option `tensors`."""
    macros: dict[str, str] = {}
    identifiers: dict[str, str] = {}
    for name, tensor in table.items():
        if "macro" in tensor:
            macros[tensor["macro"]] = rf"\htmlClass{{t-{name}}}{{{tensor['tex']}}}"
        for identifier in tensor.get("code", ()):
            if identifier in identifiers:
                raise ValueError(f"tensors: {identifier!r} is of two tensors")
            identifiers[identifier] = f"t-{name}"
    return macros, identifiers


def superfences(md: Markdown) -> SuperFencesCodeExtension:
    """The superfences of this Markdown instance, loaded if need be."""
    for attempt in range(2):
        for extension in md.registeredExtensions:
            if isinstance(extension, SuperFencesCodeExtension):
                return extension
        if not attempt:
            md.registerExtensions(["pymdownx.superfences"], {})
    raise AssertionError("pymdownx.superfences did not register itself")


def keep_options(
    language: str,
    inputs: dict[str, str],
    options: dict[str, str],
    attrs: dict[str, str],
    md: Markdown,
) -> bool:
    """A validator for superfences that leaves judgement to the formatter."""
    options.update(inputs)
    return True


def render_fence(
    site: Site, src: str, language: str, options: dict[str, str], **_: Any
) -> str:
    """A formatter for superfences. Raises PageError."""
    try:
        return inputs.fence(site, language or "", src, options)
    except Exception as error:
        head = " ".join([language or "", *map(str, options.values())])
        raise PageError(f"```{head}, {src.strip()[:60]!r}: {error}") from error


def base(md: Markdown) -> str:
    """The way from the page to the root of the site, if the builder is MkDocs."""
    if "relpath" not in md.treeprocessors:
        return "/"
    url = md.treeprocessors["relpath"].file.url  # type: ignore[attr-defined]
    return "../" * url.removeprefix("./").count("/") or "./"


class Before(Preprocessor):
    """Checks that fences are ours, and learns where the page is."""

    def __init__(self, md: Markdown, extension: VerifiedDocs) -> None:
        super().__init__(md)
        self.extension = extension

    def run(self, lines: list[str]) -> list[str]:
        """Raises PageError if another extension has taken the fences."""
        fenced = self.md.preprocessors["fenced_code_block"]
        if getattr(fenced, "extension", None) is not self.extension.superfences:
            raise PageError(
                "another extension took the fences: verified_docs.pages.markdown loads "
                "pymdownx.superfences itself; leave it and fenced_code out"
            )
        self.extension.site.base = base(self.md)
        return lines


class After(Preprocessor):
    """Refuses what looks like a fence and was not; hides pipes from tables."""

    def run(self, lines: list[str]) -> list[str]:
        """Raises PageError."""
        for line in lines:
            match = FENCE.match(line)
            if match and match[1][0] not in line[match.end() :]:
                raise PageError(
                    f"{line.strip()!r} opens no fence: "
                    "close it, write its options as "
                    'key="value", and put it on a line of its own'
                )
        return [
            re.sub(DIRECTIVE, lambda found: found[0].replace("|", PIPE), line)
            for line in lines
        ]


class Pipes(Postprocessor):
    """Puts back the pipes of directives that stayed as they were, in code."""

    def run(self, text: str) -> str:
        """The page with its pipes."""
        return text.replace(PIPE, "|")


class Directive(InlineProcessor):
    """{measured: ...}, {stated: ...} and {verified: summary}."""

    def __init__(self, pattern: str, md: Markdown, site: Site) -> None:
        super().__init__(pattern, md)
        self.site = site

    def handleMatch(  # type: ignore[override]
        self, m: re.Match[str], data: str
    ) -> tuple[str | Element, int, int]:
        """Replace a directive. Raises PageError."""
        kind, text = m[1], m[2].replace(PIPE, "|").strip()
        try:
            if kind == "stated":
                return figures.stated(text, self.entries), m.start(0), m.end(0)
            html = inputs.directive(self.site, kind, text)
        except Exception as error:
            raise PageError(f"{{{kind}: {text}}}: {error}") from error
        return self.md.htmlStash.store(html), m.start(0), m.end(0)

    @functools.cached_property
    def entries(self) -> dict[str, str]:
        """The anchors of the bibliography's entries, by their titles."""
        path = self.site.evidence.root / "docs" / figures.BIBLIOGRAPHY
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        titles = re.findall(r"^### (.+?)\s*$", text, re.MULTILINE)
        return {title: slugify(title, "-") for title in titles}


def makeExtension(**options: Any) -> VerifiedDocs:
    """What Python-Markdown calls."""
    return VerifiedDocs(**options)
