"""What authors and machines break: a clear message each time, and nothing lost."""

import pytest
from mkdocs.exceptions import Abort

from tests.machinery import small_site
from verified_docs.check import Finding, Weight

ONE = "snippets/part/one.py"
PAGE = "docs/part/page.md"
RECORD = f"records/{small_site.GPU}/verification.json"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return small_site.sound(tmp_path_factory.getbasetemp() / "sound")


@pytest.fixture
def site(sound, tmp_path):
    return small_site.copy(sound, tmp_path / "copy")


def refusal(root, caplog) -> str:
    """What the build says when it stops; the site of before is still there."""
    with pytest.raises(Abort):
        small_site.build(root)
    return caplog.text


def test_a_renamed_section(site, caplog):
    small_site.edit(site, ONE, "[start:kernel]", "[start:core]")
    small_site.edit(site, ONE, "[end:kernel]", "[end:core]")
    small_site.record(site)
    found = [f for f in small_site.found(site) if f.path == PAGE]
    line = small_site.line_of(site / PAGE, '"part/one.py:kernel"')
    reason = "part/one.py has no section 'kernel'; its sections are: core, demo"
    assert (line, reason) in [(f.line, f.reason) for f in found]
    told = refusal(site, caplog)
    assert "part/page.md" in told
    assert "there is no section 'kernel'; the sections are: core, demo" in told


def test_a_deleted_record(site):
    (site / RECORD).unlink()
    small_site.build(site)
    found = small_site.found(site)
    missing = {f.path for f in found if f.reason == "no GPU has a record of it"}
    assert missing == {ONE, "snippets/part/two.py"}
    assert {f.weight for f in found} == {Weight.RECORD}


def test_a_record_with_a_wrong_hash(site):
    small_site.edit(site, RECORD, small_site.digest(site / ONE), "0" * 64)
    small_site.build(site)
    found = small_site.found(site)
    assert {f.weight for f in found} == {Weight.RECORD}
    stale = [f.reason for f in found if f.path == ONE]
    assert ["stale: it or its tests" in reason for reason in stale] == [True]
    html = (site / "site/part/page/index.html").read_text()
    assert "Stale: changed since its GPU run" in html


def test_a_truncated_record(site, caplog):
    text = (site / RECORD).read_text()
    (site / RECORD).write_text(text[: len(text) // 2])
    found = small_site.found(site)
    assert [f.path for f in found] == [RECORD]
    assert found[0].line == text[: len(text) // 2].count("\n") + 1
    assert "not JSON, perhaps cut short" in found[0].reason
    assert "perhaps cut short" in refusal(site, caplog)
    assert (site / RECORD).read_text() == text[: len(text) // 2]


def test_two_gpus_that_disagree(site):
    small_site.record(site, "other-gpu", "part/two.py")
    small_site.build(site)
    reason = "verified on test-gpu, but failed or was not run on other-gpu"
    assert small_site.found(site) == [Finding(ONE, 1, reason, Weight.WARNING)]


def test_a_snippet_with_a_syntax_error(site, caplog):
    small_site.edit(site, ONE, "def double(x: float)", "def double(x: float")
    line = small_site.line_of(site / ONE, "def double")
    found = [f for f in small_site.found(site) if f.path == ONE]
    assert [f.line for f in found] == [line]
    assert "syntax error" in found[0].reason
    told = refusal(site, caplog)
    assert f"{ONE}:{line}: syntax error" in told
    assert "part/page.md" in told


def test_bad_tex(site, caplog):
    small_site.edit(site, PAGE, "$2x = x + x$", r"$\frac{1$")
    told = refusal(site, caplog)
    assert "part/page.md" in told
    assert r"bad TeX '\\frac{1'" in told


def test_the_same_section_twice(site):
    block = '```python\n--8<-- "part/one.py:kernel"\n```\n'
    with (site / PAGE).open("a") as page:
        page.write(f"\nAgain:\n\n{block}\n```svg\ndot.svg\n```\n")
    small_site.build(site)
    assert small_site.found(site) == []


def test_a_page_with_windows_line_ends(site):
    text = (site / PAGE).read_bytes()
    (site / PAGE).write_bytes(text.replace(b"\n", b"\r\n"))
    small_site.build(site)
    assert small_site.found(site) == []


def test_a_snippet_with_windows_line_ends(site):
    text = (site / ONE).read_bytes()
    (site / ONE).write_bytes(text.replace(b"\n", b"\r\n"))
    small_site.record(site)
    small_site.build(site)
    found = small_site.found(site)
    assert [(f.path, f.line) for f in found] == [(ONE, 1)]
    assert "Windows line ends" in found[0].reason


def test_text_that_is_not_ascii(site):
    small_site.edit(site, ONE, "zweimal", "δύο φορές 两倍 🙂")
    small_site.edit(site, PAGE, "It doubles.", "Es verdoppelt: ≤ ∑ ü 两倍 🙂.")
    small_site.record(site)
    small_site.build(site)
    assert small_site.found(site) == []


def test_a_snippet_that_is_not_utf_8(site):
    line = small_site.line_of(site / ONE, "float")
    data = (site / ONE).read_bytes()
    (site / ONE).write_bytes(data.replace(b"float", b"fl\xf6at", 1))
    found = [f for f in small_site.found(site) if f.path == ONE]
    assert found == [Finding(ONE, line, "the file is not UTF-8")]
