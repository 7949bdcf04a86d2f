"""TeX to MathML at build time, by Temml in an embedded JavaScript engine."""

import functools
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor

from verified_docs.pages.engine import engine
from verified_docs.pages.errors import PageError
from verified_docs.pages.made import marked

HERE = Path(__file__)
TEMML = HERE.parents[2] / "node_modules/temml/dist/temml.min.js"
STOPS = ",.;:!?)"  # A line begins with none.
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


@functools.cache  # Many formulas are on several pages.
def mathml(tex: str, display: bool, macros: str) -> str:
    """A formula, apart or in a line, with macros: JSON. Raises PageError."""
    scripts = engine(TEMML, HERE.with_suffix(".mjs"))
    html, wrong = scripts.call("mathml", tex, display, macros)
    if wrong:
        raise PageError(f"bad TeX {tex!r}: {wrong}")
    return str(html)


class TexTreeprocessor(Treeprocessor):
    """Replaces what pymdownx.arithmatex (generic) found by rendered formulas."""

    def __init__(self, md: Markdown, macros: str, mark: str) -> None:
        super().__init__(md)
        self.macros = macros
        self.mark = mark

    def run(self, root: Element) -> None:
        """Render every formula. Raises PageError, also for one inside a heading."""
        for heading in root.iter():
            if heading.tag in HEADINGS and any(map(_is_math, heading.iter())):
                what = f"TeX in the heading {''.join(heading.itertext()).strip()!r}"
                raise PageError(f"{what}: a table of contents cannot show it")
        for element in list(filter(_is_math, root.iter())):
            tex = "".join(element.itertext()).strip()[2:-2].strip()  # Less \( and \).
            display = element.tag == "div"
            tex = unescape(tex) if display else tex  # Escaped there only.
            html = mathml(tex, display, self.macros)
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


def _is_math(element: Element) -> bool:
    return "arithmatex" in element.get("class", "").split()
