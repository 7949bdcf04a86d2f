"""What authors and machines break: a clear message each time, and nothing lost."""

import textwrap

import pytest
from markdown import Markdown
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tests.machinery import small_site
from verified_docs.check import Finding, Missing, Weight
from verified_docs.evidence import records
from verified_docs.pages.errors import PageError

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


def indented(text, width=4):
    return textwrap.indent(text, " " * width)


def quoted(text):
    return textwrap.indent(text, "> ", lambda line: True)


# Where a fault may stand: what is around it, and how many lines are above it.
CONTEXTS = {
    "page": (lambda text: text, 0),
    "html": (lambda text: f'<div markdown="1">\n\n{text}\n</div>\n', 2),
    "tab": (lambda text: f'=== "T"\n\n{indented(text)}', 2),
    "admonition": (lambda text: f"!!! note\n\n{indented(text)}", 2),
    "nested list": (lambda text: f"- a\n\n    - b\n\n{indented(text, 8)}", 4),
    "quote": (quoted, 0),
    "list in a quote": (lambda text: quoted(f"- a\n\n{indented(text)}"), 2),
}
INCLUDE = '```python\n--8<-- "part/one.py:{}"\n```\n'
# What stops the build: the text, the line in it, the reason.
STOPS = {
    "section": (INCLUDE.format("gone"), 0, "there is no section 'gone'"),
    "typed": ("```python\nx = 1\n```\n", 0, "code comes from snippets"),
    "options": (INCLUDE.format("kernel").replace("n\n", 'n a="b"\n', 1), 0, "not a"),
    "output": ('```output from="part/gone.py"\n```\n', 0, "no such snippet"),
    "indented": ("A\n\n    y = 2\n", 2, "an indented code block, 'y = 2'"),
    "open": ("```python title=a b\nx\n", 0, "opens no fence"),
    "figure": ("{measured: part n}\n{measured: part z}\n", 1, "no measurement has"),
    "formula": ("As $a$ and\n$\\gone$.\n", 1, "bad TeX '\\\\gone'"),
    "display": ("$$\n\\gone\n$$\n", 0, "bad TeX '\\\\gone'"),
}
# What the check finds, though the page has the same text above it.
FINDS = {
    "directive": ('--8<-- "part/one.py:kernel"\n', "directive printed literally"),
    "image": ("![](../assets/dot.png)\n", "<img> has no alt text"),
    "figure": ("{measured: part seconds n=8 | us}\n", "not yet measured"),
    "code": ("<pre>return total</pre>\n", "no include of a snippet: 'return total'"),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("stop", STOPS)
def test_the_build_says_where_it_stopped(site, stop, context):
    text, line, reason = STOPS[stop]
    around, above = CONTEXTS[context]
    page = f"{small_site.PAGE}\n{around(text)}"
    told = convert(site, page.replace("\n", "\r\n"))
    line += small_site.PAGE.count("\n") + above + 2
    assert told.startswith(f"{PAGE}:{line}: ")
    assert reason in told


def convert(root, text):
    """What the extension says of the page when it refuses it."""
    (root / PAGE).write_bytes(text.encode())
    body = text.split("---\r\n", 2)[2].lstrip("\r\n")  # MkDocs takes these away.
    options = load_config(str(root / "mkdocs.yml"))
    md = Markdown(
        extensions=options.markdown_extensions, extension_configs=options.mdx_configs
    )
    with pytest.raises(PageError) as caught:
        md.convert(body)
    return str(caught.value)


@pytest.mark.parametrize("find", FINDS)
def test_the_check_says_which_of_two_places(site, find):
    text, reason = FINDS[find]
    lines = []
    for context, (around, above) in CONTEXTS.items():
        if context == "html":  # The build refuses a <pre> there.
            continue
        before = (site / PAGE).read_text()
        lines.append(before.count("\n") + 4 + above)
        paragraph = f"A paragraph before the {context}."
        (site / PAGE).write_text(f"{before}\n{paragraph}\n\n{around(text)}")
    small_site.build(site)
    found = [f for f in small_site.found(site) if reason in f.reason]
    assert [f.line for f in found] == lines
    assert {f.path for f in found} == {PAGE}


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
    small_site.edit(site, RECORD, records.sha256(site / ONE), "0" * 64)
    small_site.build(site)
    found = small_site.found(site)
    assert {f.weight for f in found} == {Weight.RECORD}
    stale = [f.reason for f in found if f.path == ONE]
    assert stale == [f"stale on Test GPU: {ONE}"]
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
    assert small_site.found(site) == [
        Finding(ONE, 1, "not run on other-gpu", Weight.WARNING)
    ]


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


def test_a_page_with_a_byte_order_mark(site):
    (site / PAGE).write_bytes(b"\xef\xbb\xbf" + (site / PAGE).read_bytes())
    small_site.build(site)
    assert small_site.found(site) == []


def hook(root):
    """Use the hook that this site uses, too."""
    line = f"hooks: [{small_site.ROOT}/verified_docs/pages/notebook.py]\nplugins:"
    small_site.edit(root, "mkdocs.yml", "plugins:", line)


def test_a_page_that_is_not_utf_8(site, caplog):
    hook(site)
    line = small_site.line_of(site / PAGE, "It doubles")
    data = (site / PAGE).read_bytes()
    (site / PAGE).write_bytes(data.replace(b"It doubles", b"\xf6"))
    with pytest.raises(Missing, match=f"^{PAGE}:{line}: the file is not UTF-8"):
        small_site.found(site)
    assert f"{PAGE}:{line}: the file is not UTF-8" in refusal(site, caplog)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"n": 4,', '"n": 4', "not JSON"),
        ('"measurements": [', '"measurements": [7,', "/measurements/0 is a int"),
        ('"measurements"', '"measurements": {}, "more"', "/measurements is a dict"),
        ('"seconds": 1.5e-06', '"seconds": "fast"', "'fast' is no number"),
    ],
)
def test_a_benchmark_of_another_shape(site, caplog, old, new, reason):
    small_site.edit(site, f"records/{small_site.GPU}/part.json", old, new)
    assert any(reason in f.reason for f in small_site.found(site))
    told = refusal(site, caplog)
    assert f"{PAGE}:" in told
    assert reason in told


def test_a_configuration_that_is_no_yaml(site):
    small_site.edit(site, "mkdocs.yml", "site_name: A", "site_name: [A")
    with pytest.raises(Missing, match=r"^mkdocs\.yml:2: "):
        small_site.found(site)


SVG_FAULTS = {
    "figure": ("<text>3 ms</text>", "typed-in measurement '3 ms'"),
    "link": ('<a href="gone/"><text>x</text></a>', "link 'gone/' leads to no file"),
    "formula": ("<text>$x^2$</text>", "mathematics did not render"),
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


@pytest.mark.parametrize("path", ["sub/path/", "sub/path"])
def test_a_site_below_a_path(site, monkeypatch, path):
    monkeypatch.setenv("SITE_URL", f"https://site.example/{path}")
    small_site.build(site)
    assert small_site.found(site) == []
    monkeypatch.delenv("SITE_URL")
    assert small_site.found(site) == []
