"""Formulas: rendered while building, spoken, and left out of the search."""

import re

import pytest

from verified_docs.pages.errors import PageError

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


def formulas(page: str) -> list[str]:
    """What each says, without its tags."""
    found = re.findall(r"<math.*?</math>", page, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", formula) for formula in found]


def test_formulas_in_a_line_and_apart(repository):
    formula = r"a < b \text{ and } c > \m_i"
    page = repository.page(f"A ${formula}$ in text.\n\n\\[{formula}\\]")
    assert formulas(page) == ["a&lt;b\xa0and\xa0c&gt;mi"] * 2
    assert page.count("data-search-exclude") == 2
    assert page.count('display="block"') == 1
    assert len(re.findall(r'class="[^"]*\bt-m\b', page)) == 2


def test_alignment_and_what_follows_a_formula(repository):
    page = repository.page("$$\n\\begin{aligned} a &= b \\\\ &< c \\end{aligned}\n$$")
    assert formulas(page) == ["a=b&lt;c"]
    page = repository.page("$x$, *not* lost, and $y$.")
    assert ",</var> <em>not</em> lost, and <var" in page  # A comma stays on the line.
    assert ".</var></p>" in page


# What a browser needs to draw a formula as the others do.
NEEDED = [
    (r"\bar{x}", 'stretchy="true"'),  # WebKit
    (r"\smash{x}", 'height="1px"'),
    (r"a \odot b", 'largeop="false"'),  # Firefox
    (r"\mathrm{lse}_i", 'depth="0px"'),
]


@pytest.mark.parametrize(("formula", "attribute"), NEEDED)
def test_every_browser_draws_the_formula(repository, formula, attribute):
    assert attribute in repository.page(f"${formula}$")
