"""Formulas: rendered while building, spoken, and left out of the search."""

import re

import pytest

from verified_docs.pages.errors import PageError
from verified_docs.pages.math import Tex

# What stops the build, and why.
BAD = [
    (r"\frac{1}{", "expected '}'"),
    (r"\nope", r"Unsupported function name: \nope"),
    (r"x^2^3", "Double superscript"),
    (r"\href{https://example.org}{x}", r"Unsupported function name: \href"),
    (r"\id{top}{x}", r"\id is not allowed"),
    (r"\class{badge}{x}", r"\class is not allowed"),
    # What a formula defines is not known to others.
    (r"\gdef\leak{y} \leak$, $\leak", r"Unsupported function name: \leak"),
]


@pytest.mark.parametrize(("formula", "reason"), BAD)
def test_bad_tex_is_named_with_its_reason(repository, formula, reason):
    with pytest.raises(PageError) as caught:
        repository.page(f"${formula}$")
    assert repr(formula.rpartition("$")[2]) in str(caught.value)
    assert reason in str(caught.value)


def test_temml_that_is_not_installed_is_said(tmp_path):
    with pytest.raises(PageError, match="is missing: install the npm packages"):
        Tex(tmp_path).render([("x", False)])


def formulas(page: str) -> list[str]:
    """What each says, without its tags."""
    found = re.findall(r"<math.*?</math>", page, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", formula) for formula in found]


CONTEXTS = {
    "paragraph": "A $FORMULA$ in text, *and $FORMULA$ in stress*.",
    "display": "$$\nFORMULA\n$$\n\n\\[FORMULA\\]",
    "list": "- $FORMULA$\n\n    $$\n    FORMULA\n    $$",
    "admonition": '!!! note "With $FORMULA$"\n\n    $$\n    FORMULA\n    $$',
    "tab": '=== "A"\n\n    $FORMULA$\n\n    $$\n    FORMULA\n    $$',
    "table": "| a | b |\n|---|---|\n| $FORMULA$ | $FORMULA$ |",
    "html": '<div markdown="1">\n\n$FORMULA$\n\n$$\nFORMULA\n$$\n\n</div>',
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_formulas_in_every_context(repository, context):
    formula = r"a < b \text{ and } c > \m_i"
    page = repository.page(CONTEXTS[context].replace("FORMULA", formula))
    assert formulas(page) == ["a&lt;b\xa0and\xa0c&gt;mi"] * 2
    assert page.count("data-search-exclude") == 2
    displayed = CONTEXTS[context].count("$$") // 2 + CONTEXTS[context].count("\\[")
    assert page.count('display="block"') == displayed
    assert "\\(" not in page
    assert "\\[" not in page
    assert "arithmatex" not in page
    assert len(re.findall(r'class="[^"]*\bt-m\b', page)) == 2


def test_alignment_and_what_follows_a_formula(repository):
    page = repository.page("$$\n\\begin{aligned} a &= b \\\\ &< c \\end{aligned}\n$$")
    assert formulas(page) == ["a=b&lt;c"]
    page = repository.page("$x$, *not* lost, and $y$.")
    assert ",</var> <em>not</em> lost, and <var" in page  # A comma stays on the line.
    assert ".</var></p>" in page


def test_dollars_in_code_are_no_formulas(repository):
    assert "<math" not in repository.page("`$x$` and ```` $y$ ````, 5 $ and 6 $.")
