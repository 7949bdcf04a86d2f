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


def test_a_formula_and_what_follows_it(repository):
    page = repository.page(
        "$$\n\\begin{aligned} a &= b \\\\ &< \\m_i \\end{aligned}\n$$"
    )
    assert formulas(page) == ["a=b&lt;mi"]
    assert page.count('display="block"') == page.count("data-search-exclude") == 1
    assert len(re.findall(r'class="[^"]*\bt-m\b', page)) == 1
    page = repository.page("$x$, *not* lost, and $y$.")
    assert ",</var> <em>not</em> lost, and <var" in page  # A comma stays on the line.
    assert ".</var></p>" in page
    assert page.count("data-search-exclude") == 2
    assert 'display="block"' not in page


def test_dollars_in_code_are_no_formulas(repository):
    assert "<math" not in repository.page("`$x$` and ```` $y$ ````, 5 $ and 6 $.")
