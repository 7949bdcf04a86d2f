"""The font of formulas, which is cut down to the characters that the Makefile names."""

import html
import re

from fontTools.ttLib import TTFont

from tests.site.server import SITE, pages, read

FORMULA = re.compile(r"<math.*?</math>", re.DOTALL)


def test_the_font_has_what_formulas_use() -> None:
    with TTFont(SITE / "assets/vendor/temml/STIXTwoMath.woff2") as font:
        drawn = {*map(chr, font.getBestCmap())} | set("\xa0\ufe0e")  # No ink.
    for page in pages():
        found = FORMULA.findall(read(page))
        formulas = (re.sub("<[^>]*>", "", each) for each in found)
        used = set(html.unescape("".join(formulas)))
        assert used <= drawn, f"{page}: add {used - drawn} to FORMULAS in the Makefile"
