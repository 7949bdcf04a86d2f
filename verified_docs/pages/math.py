"""TeX to MathML at build time, by Temml in an embedded JavaScript engine."""

import functools
import json
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor
from py_mini_racer import MiniRacer

from verified_docs.pages.engine import started
from verified_docs.pages.errors import PageError
from verified_docs.pages.made import marked

RENDER = """
// As in TeX: no room around an operator in a script, and an accent on its letter. The
// rest is for browsers: WebKit puts a bar far above its letter unless it stretches, and
// draws nothing of what has no height; Firefox takes ⊙ for a large operator, and puts
// an index below the depth that a name might have.
const tidied = (node, inScript) => {
  const scripts = /^m(sub|sup|under|over)/.test(node.type);
  const [first, second] = node.children ?? [];
  if (inScript && node.type === "mo")
    node.attributes = { lspace: "0", rspace: "0", ...node.attributes };
  if (node.type === "mo" && first?.text === "⊙") node.setAttribute("largeop", "false");
  if (node.type === "mover" && second.style?.mathDepth) {
    node.setAttribute("accent", "true");
    if (second.children[0].text === "‾") {
      second.setAttribute("stretchy", "true");
      second.classes = [];
    }
  }
  if (node.type === "mpadded" && node.attributes.height === "0px")
    node.setAttribute("height", "1px");
  if (node.type === "msub" && first.type === "mpadded")
    first.setAttribute("depth", "0px");
  node.children?.forEach((each, i) => tidied(each, inScript || (scripts && i > 0)));
  return node;
};
const tree = (formula, displayMode, macros) => temml.__renderToMathMLTree(formula, {
  displayMode,
  wrap: "tex",
  throwOnError: true,
  // Classes are the only HTML that a formula may bring along: of tensors, and of code.
  trust: (context) => {
    if (/^(t-[a-z]+|code)$/.test(context.class)) return true;
    throw new Error(`${context.command} is not allowed`);
  },
  // A name of the code has the letters of the code.
  macros: { ...JSON.parse(macros), "\\\\texttt": "\\\\class{code}{\\\\text{#1}}" },
});
const attempt = (...formula) => {
  try { return [tidied(tree(...formula)).toMarkup(), ""]; }
  catch (error) { return ["", String(error)]; }
};
const render = (formulas, macros) =>
  JSON.stringify(formulas.map((formula) => attempt(...formula, macros)));
"""
STOPS = ",.;:!?)"  # A line begins with none.
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class Tex:
    """Temml, from the folder of its npm package, with macros: JSON."""

    def __init__(self, temml: Path, macros: str = "{}") -> None:
        self.script = temml / "dist" / "temml.min.js"
        self.macros = macros
        self.known: dict[tuple[str, bool], str] = {}  # what was rendered so far

    @functools.cached_property
    def engine(self) -> MiniRacer:
        """What runs it. Raises PageError."""
        if not self.script.is_file():
            raise PageError(f"{self.script} is missing: install the npm packages")
        return started(self.script.read_text(encoding="utf-8"), RENDER)

    def render(self, formulas: list[tuple[str, bool]]) -> list[str]:
        """Each as MathML, apart or in a line; what is new in one call of the engine.

        Raises PageError.
        """
        if new := [each for each in dict.fromkeys(formulas) if each not in self.known]:
            call = f"render({json.dumps(new)}, {json.dumps(self.macros)})"
            found = json.loads(str(self.engine.eval(call)))
            for each, (html, error) in zip(new, found, strict=True):
                if error:
                    why = error.split("Error: ", 1)[-1].strip()
                    raise PageError(f"bad TeX {each[0]!r}: {why}")
                self.known[each] = html
        return [self.known[each] for each in formulas]


shared = functools.cache(Tex)  # by all pages


class TexTreeprocessor(Treeprocessor):
    """Replaces what pymdownx.arithmatex (generic) found by rendered formulas."""

    def __init__(self, md: Markdown, tex: Tex, mark: str) -> None:
        super().__init__(md)
        self.tex = tex
        self.mark = mark

    def run(self, root: Element) -> None:
        """Render every formula. Raises PageError, also for one inside a heading."""
        for heading in root.iter():
            formula = next(filter(_is_math, heading.iter()), None)
            if heading.tag in HEADINGS and formula is not None:
                what = f"TeX in the heading {''.join(heading.itertext()).strip()!r}"
                raise PageError(f"{what}: a table of contents cannot show it")
        found = list(filter(_is_math, root.iter()))
        formulas = [(_source(each), each.tag == "div") for each in found]
        shown = self.tex.render(formulas)
        for element, (tex, display), html in zip(found, formulas, shown, strict=True):
            self._replace(element, display, marked(html, self.mark, "tex", tex))

    def _replace(self, element: Element, display: bool, html: str) -> None:
        tail = element.tail or ""
        rest = tail if display else tail.lstrip(STOPS)
        element.clear()
        # Not <span>: the search plugin would end the exclusion at the first </span>.
        element.tag = "div" if display else "var"
        element.set("class", "math")
        element.set("data-search-exclude", "")
        element.text = self.md.htmlStash.store(html) + tail.removesuffix(rest)
        element.tail = rest


def _source(element: Element) -> str:
    """The TeX between \\( and \\), or \\[ and \\]."""
    formula = "".join(element.itertext()).strip()[2:-2].strip()
    return unescape(formula) if element.tag == "div" else formula  # Escaped there only.


def _is_math(element: Element) -> bool:
    return "arithmatex" in element.get("class", "").split()
