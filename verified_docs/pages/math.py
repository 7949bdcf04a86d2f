"""TeX to HTML and MathML at build time, by KaTeX in an embedded JavaScript engine."""

import functools
import json
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor
from py_mini_racer import JSEvalException, MiniRacer

from verified_docs.pages.engine import started
from verified_docs.pages.errors import PageError

RENDER = """
(formula, display, macros) => katex.renderToString(formula, {
  displayMode: display,
  output: "htmlAndMathml",
  throwOnError: true,
  // Classes are the only HTML that a formula may bring along.
  strict: (code) => code === "htmlExtension" ? "ignore" : "error",
  trust: (context) => {
    if (context.command === "\\\\htmlClass") return true;
    throw new Error(`${context.command} is not allowed`);
  },
  macros: JSON.parse(macros),
})
"""
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class TexError(PageError):
    """A formula that KaTeX refuses, with the formula and the reason."""


class Tex:
    """KaTeX with a set of macros; `katex` is the folder of the npm package."""

    def __init__(self, katex: Path, macros: dict[str, str] | None = None) -> None:
        self.katex = katex
        self.macros = json.dumps(macros or {}, sort_keys=True)

    def render(self, formula: str, display: bool = False) -> str:
        """The formula as HTML with MathML inside. Raises TexError."""
        return _render(self.katex, self.macros, formula.strip(), display)


@functools.cache
def _engine(katex: Path) -> MiniRacer:
    script = katex / "dist" / "katex.min.js"
    if not script.is_file():
        raise TexError(f"{script} is missing: install the npm packages")
    return started(script.read_text(encoding="utf-8"), f"var render = {RENDER}")


@functools.cache
def _render(katex: Path, macros: str, formula: str, display: bool) -> str:
    arguments = ", ".join(json.dumps(value) for value in (formula, display, macros))
    try:
        return str(_engine(katex).eval(f"render({arguments})"))
    except JSEvalException as error:
        reason = str(error).split("Error: ", 1)[-1].split("\n")[0]
        raise TexError(f"bad TeX {formula!r}: {reason}") from None


class TexTreeprocessor(Treeprocessor):
    """Replaces what pymdownx.arithmatex (generic) found by rendered formulas."""

    def __init__(self, md: Markdown, tex: Tex) -> None:
        super().__init__(md)
        self.tex = tex

    def run(self, root: Element) -> None:
        """Render every formula. Raises TexError, also for one inside a heading."""
        for heading in root.iter():
            formula = next(filter(_is_math, heading.iter()), None)
            if heading.tag in HEADINGS and formula is not None:
                text = "".join(heading.itertext()).strip()
                raise TexError(
                    f"TeX in the heading {text!r}: a table of contents cannot show it"
                )
        for element in root.iter():
            if _is_math(element):
                self._replace(element)

    def _replace(self, element: Element) -> None:
        display = element.tag == "div"
        formula = _source(element)
        html = self.tex.render(formula, display)
        tail = element.tail
        element.clear()
        # Not <span>: the search plugin would end the exclusion at the first </span>.
        element.tag = "div" if display else "var"
        element.set("class", "math")
        element.set("data-search-exclude", "")
        element.text = self.md.htmlStash.store(html)
        element.tail = tail


def _source(element: Element) -> str:
    """The TeX between \\( and \\), or \\[ and \\]."""
    formula = "".join(element.itertext()).strip()[2:-2]
    return unescape(formula) if element.tag == "div" else formula  # Escaped there only.


def _is_math(element: Element) -> bool:
    return "arithmatex" in element.get("class", "").split()
