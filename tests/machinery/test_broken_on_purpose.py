"""What authors and machines break: a clear message each time, and nothing lost."""

import pytest
from mkdocs.exceptions import Abort

from tests.machinery import small_site
from verified_docs.check import Missing, Weight

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
    """What the build says when it stops."""
    with pytest.raises(Abort):
        small_site.build(root)
    return caplog.text


INCLUDE = '```python\n--8<-- "part/one.py:{}"\n```\n'
# What stops the build: the text, and the reason; MkDocs names the page.
STOPS = {
    "section": (INCLUDE.format("gone"), "there is no section 'gone'"),
    "typed": ("```python\nx = 1\n```\n", "code comes from snippets"),
    "indented": ("A\n\n    y = 2\n", "an indented code block or a <pre>, 'y = 2'"),
    "figure": ("{measured: part n}\n{measured: part z}\n", "no measurement has"),
    "formula": ("As $a$ and\n$\\gone$.\n", "bad TeX '\\\\gone'"),
}


@pytest.mark.parametrize("stop", STOPS)
def test_the_build_says_why_it_stopped(site, caplog, stop):
    text, reason = STOPS[stop]
    page = f"{small_site.PAGE}\n{text}"
    (site / PAGE).write_bytes(page.replace("\n", "\r\n").encode())
    told = refusal(site, caplog)
    assert PAGE.removeprefix("docs/") in told
    assert reason in told


def test_a_renamed_section(site, caplog):
    small_site.edit(site, ONE, "[start:kernel]", "[start:core]")
    small_site.edit(site, ONE, "[end:kernel]", "[end:core]")
    line = small_site.line_of(site / PAGE, '"part/one.py:kernel"')
    reason = "there is no section 'kernel'; the sections are: core, demo"
    found = [f for f in small_site.found(site) if reason in f.reason]
    assert (PAGE, line) in [(f.path, f.line) for f in found]
    assert reason in refusal(site, caplog)


def test_a_deleted_record(site):
    (site / RECORD).unlink()
    small_site.build(site)
    found = small_site.found(site)
    missing = {f.path for f in found if f.reason == "no GPU has a record of it"}
    assert missing == {ONE, "snippets/part/two.py"}
    assert not any(f.weight is Weight.FAULT for f in found)


def test_a_record_that_is_stale_names_the_file(site):
    small_site.edit(site, "tests/snippets/part/test_one.py", "Tests", "Tests,")
    small_site.build(site)
    found = {f.reason: f.weight for f in small_site.found(site) if f.path == ONE}
    reason = "stale on Test GPU: tests/snippets/part/test_one.py"
    assert found[reason] is Weight.RECORD


def test_a_truncated_record(site, caplog):
    text = (site / RECORD).read_text()
    (site / RECORD).write_text(text[: len(text) // 2])
    found = [f for f in small_site.found(site) if f.path == RECORD]
    assert ["not JSON, perhaps cut short" in f.reason for f in found] == [True]
    assert found[0].line == text[: len(text) // 2].count("\n") + 1
    assert "perhaps cut short" in refusal(site, caplog)


def test_two_gpus_that_disagree(site):
    small_site.record(site, "other-gpu", "part/two.py")
    small_site.build(site)
    (found,) = small_site.found(site)
    assert (found.path, found.reason) == (ONE, "not run on other-gpu")
    assert found.weight is Weight.WARNING


def test_a_snippet_with_a_syntax_error(site, caplog):
    small_site.edit(site, ONE, "def double(x: float)", "def double(x: float")
    line = small_site.line_of(site / ONE, "def double")
    found = [f for f in small_site.found(site) if f.path == ONE]
    assert (line, True) in [(f.line, "syntax error" in f.reason) for f in found]
    assert f"{ONE}:{line}: syntax error" in refusal(site, caplog)


def windows(data):
    return data.replace(b"\n", b"\r\n")


def marked(data):
    return b"\xef\xbb\xbf" + data


def twice(data):
    block = INCLUDE.format("kernel").encode()
    return data + b"\nAgain:\n\n" + block + b"\n```svg\ndot.svg\n```\n"


def foreign(data):
    return data.replace(b"It doubles.", "Es verdoppelt: ≤ ∑ ü 两倍 🙂.".encode())


@pytest.mark.parametrize("change", [windows, marked, twice, foreign])
def test_what_is_unusual_and_sound(site, change):
    (site / PAGE).write_bytes(change((site / PAGE).read_bytes()))
    small_site.build(site)
    assert small_site.found(site) == []


def test_a_snippet_with_windows_line_ends(site):
    (site / ONE).write_bytes(windows((site / ONE).read_bytes()))
    small_site.record(site)
    small_site.build(site)
    (found,) = small_site.found(site)
    assert found.path == ONE
    assert "Windows line ends" in found.reason


def test_a_page_that_is_not_utf_8(site):
    line = small_site.line_of(site / PAGE, "It doubles")
    data = (site / PAGE).read_bytes()
    (site / PAGE).write_bytes(data.replace(b"It doubles", b"\xf6"))
    with pytest.raises(Missing, match=f"^{PAGE}:{line}: the file is not UTF-8"):
        small_site.found(site)


def test_a_configuration_that_is_no_yaml(site):
    small_site.edit(site, "mkdocs.yml", "site_name: A", "site_name: [A")
    with pytest.raises(Missing, match=r"^mkdocs\.yml: "):
        small_site.found(site)


SVG_FAULTS = {
    "figure": ("<text>3 ms</text>", "typed-in measurement '3 ms'"),
    "formula": ("<text>$x^2$</text>", "left unrendered"),
    "code": ('<text font-family="monospace">x</text>', "a font of its own"),
}


@pytest.mark.parametrize("fault", SVG_FAULTS)
def test_a_fault_inside_a_diagram(site, fault):
    text, reason = SVG_FAULTS[fault]
    small_site.edit(site, "docs/assets/dot.svg", "</svg>", f"\n{text}\n</svg>")
    small_site.build(site)
    (found,) = small_site.found(site)
    line = small_site.line_of(site / "docs/assets/dot.svg", text)
    assert (found.path, found.line) == ("docs/assets/dot.svg", line)
    assert reason in found.reason
