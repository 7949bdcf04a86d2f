"""`make new`: the files of a rung, green at once."""

import pytest

from tests.machinery.small_site import SmallSite
from verified_docs.new import NewError, lay_out

MUTANTS = '"""Bugs that the tests of snippets/part/one.py must catch."""\n'


@pytest.fixture
def site(site: SmallSite) -> SmallSite:
    site.write({"tests/mutants/part/one.py": MUTANTS})
    return site


def test_a_rung_begins_as_a_copy(site):
    last = "  - Page: part/page.md\n"
    more = f"{last}  - Brand new: part/brand-new.md\n"
    wanted = {
        "snippets/part/brand_new.py": ["def kernel"],
        "tests/snippets/part/test_brand_new.py": [
            "from snippets.part import brand_new",
            "class TestBrandNew(suite.Tests):",
        ],
        "tests/mutants/part/brand_new.py": ["snippets/part/brand_new.py"],
        "docs/part/brand-new.md": [
            '--8<-- "part/brand_new.py"',
            "```svg\ndot.svg\n```\n\n## The kernel",
        ],
        "mkdocs.yml": [site.read("mkdocs.yml").replace(last, more)],
    }
    assert lay_out(site.root, "part/brand_new", "one") == [*wanted]
    for file, texts in wanted.items():
        assert [text for text in texts if text not in site.read(file)] == []
    assert not any("FAULT" in text for text in site.found())


@pytest.mark.parametrize(
    ("rung", "origin", "reason"),
    [
        ("part/one", "one", "snippets/part/one.py is there already"),
        ("part/new", "gone", "snippets/part/gone.py is not there"),
        ("other/new", "one", "snippets/other/one.py is not there"),
        ("../new", "one", "is no name"),
        ("", "", "is no name"),
    ],
)
def test_nothing_is_written_where_something_is_wrong(site, rung, origin, reason):
    before = {p: p.read_bytes() for p in site.root.rglob("*") if p.is_file()}
    with pytest.raises(NewError, match=reason):
        lay_out(site.root, rung, origin)
    assert {p: p.read_bytes() for p in site.root.rglob("*") if p.is_file()} == before


def test_a_rung_may_begin_a_part(site):
    site.edit("mkdocs.yml", "reference/bibliography.md", "'late/last.ipynb'  # so")
    lay_out(site.root, "fresh/new", "part/one")
    test = site.read("tests/snippets/fresh/test_new.py")
    assert "from snippets.fresh import new" in test
    assert "from tests.snippets.part import suite" in test
    assert "ipynb'  # so\n  - New: fresh/new.md\n" in site.read("mkdocs.yml")
