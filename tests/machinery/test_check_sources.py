"""What authors and machines break in the sources: a clear message each time."""

import re
import shutil

import pytest

from tests.machinery.repository import FACTS
from tests.machinery.small_site import BENCHMARK, PAGE, RECORD, SNIPPET, TEST
from verified_docs import check
from verified_docs.__main__ import main
from verified_docs.check import Missing
from verified_docs.pages import blocks

TWO = "snippets/part/two.py"
TESTS = "tests/snippets/part"
BIBLIOGRAPHY = "docs/reference/bibliography.md"
UNVERIFIED = "unverified: its tests have not run since it changed [WARNING]"
DRAWN = (
    r"<text>3 <tspan>ms</tspan></text><text>$x^2$</text><text>\(x\)</text>"
    "<text>$$x$$ so</text><text>TFLOP/s</text></svg>"
)

# What is said of whatever edit of a file that is quoted.
CHANGED = [
    f"{PAGE}:56: measured 'part seconds kernel=part/two.py n=4 | us' is stale [REC",
    f"{PAGE}:58: holds 'twice as fast' is stale",
    f"{PAGE}:61: measurements 'record: part rows: kernel columns: n",
    f"{BENCHMARK}:1: timed before these changed: {TWO}; run `make bench` [WAR",
    f"{TWO}:1: stale on Test GPU: {TWO} [RECORD]",
    f"{TWO}:1: {UNVERIFIED}",
]
# An edit, (file, old text, new text), and all that the check says of the pages then.
SAID = {
    (PAGE, '"part/one.py:demo"', '"part/two.py"'): [
        f"{SNIPPET}:21: no page shows the section 'demo' [FAULT]"
    ],
    (PAGE, "kernel=part/two.py n=4", "kernel=part/one.py"): [
        f"{PAGE}:56: measured 'part seconds",
        "is not yet measured [RECORD]",
    ],
    (PAGE, "< 2e-6", "< 1e-6"): [
        f"{PAGE}:58: part seconds kernel=part/two.py n=4 < 1e-6 is false: 1.5e-06 (",
    ],
    ("docs/assets/dot.svg", "</svg>", DRAWN): [
        f"{PAGE}:1: typed-in measurement '3 ms'",
        f"{PAGE}:1: left unrendered: '$x^2$' [FAULT]",
        f"{PAGE}:1: left unrendered: '$$x$$ so' [FAULT]",
        f"{PAGE}:1: left unrendered: '\\\\(x\\\\)' [FAULT]",
        f"{PAGE}:1: typed-in measurement 'TFLOP/s'",
        f"{PAGE}:85: typed-in measurement 'ms'",  # At the first line with such letters.
    ],
    (TWO, '"""Three', '"""In 3 ms: three'): [
        *CHANGED,
        f"{TWO}:1: typed-in measurement '3 ms'",
    ],
    (TWO, '"<b>"', '"in 3 ms"'): [*CHANGED, f"{TWO}:23: typed-in measurement '3 ms'"],
    (TWO, "def kernel", "def idle():\n    pass\n\n\ndef kernel"): [
        *CHANGED,
        f"{TWO}:7: neither the file nor its tests use idle [FAULT]",
    ],
    (RECORD, '"skipped": {', '"skipped": {"test_a": "x", "test_b": "x"'): [
        f"{PAGE}:20: output 'part/one.py' is stale [RECORD]",
        f"{SNIPPET}:1: skipped too much on Test GPU: test_a, test_b [RECORD]",
        f"{SNIPPET}:1: {UNVERIFIED}",
    ],
    ("mkdocs.yml", "small.css]", "small.css, https://h.example/a.css]"): [
        f"{page}:1: <link> has 'https://h.example/a.css', which is loaded from elsewhe"
        for page in ("docs/index.md", BIBLIOGRAPHY, PAGE, "site/404.html")
    ],
    ("mkdocs.yml", "gpu: test-gpu", "gpu: another"): [
        "mkdocs.yml:1: there are no records of the GPU 'another' that the pages"
    ],
}
# An edit of sources that make no site, and what is said of them.
BROKEN = [
    ((SNIPPET, "l_i):", "l_i:"), "one.py:7: syntax error: '(' was never closed"),
    ((RECORD, '"part/one.py"', "part"), "not JSON, perhaps cut short"),
]


@pytest.mark.parametrize(("edit", "reasons"), SAID.items())
def test_what_is_said_of_what_authors_change(site, edit, reasons):
    site.edit(*edit)
    found = site.found()
    assert all(any(reason in text for text in found) for reason in reasons), found
    assert len(found) <= len(reasons)


def test_a_record_names_a_commit_that_has_its_files(site, monkeypatch):
    site.commit()
    monkeypatch.setitem(FACTS, "commit", "HEAD")
    site.record()
    sound = site.found()
    site.edit(TWO, '"""Three', '"""3')
    site.record()
    said = f"names HEAD, which differs in {TWO} [RECORD]"
    told = [f"{BENCHMARK}:1: {said}", f"{TWO}:1: its record of Test GPU {said}"]
    assert site.found() == sorted([*sound, *told])
    monkeypatch.setitem(FACTS, "commit", "c0ffee")
    site.record()
    assert "its record of Test GPU names c0ffee, which is no commit" in site.found()[1]


def test_a_record_has_a_hash_of_all_that_the_tests_import(site):
    imports = "import two\nimport judge\nfrom . import helper"
    site.edit(f"{TESTS}/test_two.py", "import two", imports)
    site.record()
    assert site.found() == []
    site.write({"judge.py": "", f"{TESTS}/helper.py": ""})
    said = f"its record of Test GPU has no hash of judge.py, {TESTS}/helper.py"
    assert site.found() == [f"{TWO}:1: {said} [RECORD]"]


@pytest.mark.parametrize(("edit", "reason"), BROKEN)
def test_sources_that_make_no_site(site, edit, reason):
    site.edit(*edit)
    with pytest.raises(Missing, match=re.escape(reason)):
        site.found()


def test_code_that_the_machinery_shows_wrong(site, monkeypatch):
    right, more = blocks._code, "x = 1\n</div></div></div>"
    monkeypatch.setattr(blocks, "_code", lambda lines, of: right([*lines, more], of))
    found = " ".join(site.found())
    assert "is not the section in its file [FAULT]" in found
    assert "it does not end in the article in which it begins" in found


def test_files_that_lack_each_other(site):
    site.record("Other GPU", "two")
    assert site.found() == [f"{SNIPPET}:1: not run on Other GPU [WARNING]"]
    site.snippet("part/gone.py", "X = 1\n")
    site.record("Test GPU", "gone", "two")
    (site.root / "snippets/part/gone.py").unlink()
    site.snippet("part/new.py", "X = 1\n", TEST)
    site.write({f"{TESTS}/test_gone.py": TEST})
    (site.root / f"{TESTS}/test_two.py").unlink()
    site.write({f"{TESTS}/test_one.py": "TESTED = True\n"})
    found = site.found()
    for reason in (
        f"{RECORD}:1: record of part/gone.py, which is no snippet [RECORD]",
        "snippets/part/new.py:1: no page shows this snippet [FAULT]",
        "snippets/part/new.py:1: no benchmark knows it [WARNING]",
        "snippets/part/new.py:1: no GPU has a record of it [RECORD]",
        f"{TWO}:1: there is no mirrored test module {TESTS}/test_two.py [FAULT]",
        f"{TESTS}/test_gone.py:1: no snippet has these tests [FAULT]",
        f"{TESTS}/test_one.py:1: the module has no test [FAULT]",
        f"{TESTS}/test_new.py:1: none of its imports leads to snippets/part/new.py [FA",
    ):
        assert any(text.startswith(reason) for text in found), reason


def test_the_command_that_runs_a_snippet(site):
    as_file, as_module = "snippets/part/one.py\n", "-m snippets.part.one\n"
    lie = "which README does not list and no test runs [FAULT]"
    site.edit(PAGE, as_file, as_module)
    assert [text.endswith(lie) for text in site.found()] == [True]
    site.edit(SNIPPET, "import math\n", "import math\n\nimport snippets.part.two\n")
    site.record()
    assert site.found() == []
    site.edit(PAGE, as_module, as_file)
    assert [text.endswith(lie) for text in site.found()] == [True]


def test_what_is_unusual_and_sound_passes_below_any_path(site, monkeypatch):
    twice = '\n```python\n--8<-- "part/two.py"\n```\n'
    text = site.read(PAGE).replace("It doubles.", "≤ ∑ ü 两倍 🙂.") + twice
    site.write({PAGE: "\ufeff" + text.replace("\n", "\r\n")})
    monkeypatch.setenv("SITE_URL", "https://docs.example/below/here/")
    site.build()
    assert check.findings(site.root, site.root / "site") == []


def test_the_command_prints_faults_and_fails(site, capsys):
    def told(*options: str) -> tuple[int, str, str]:
        status = main(["--root", str(site.root), "check", *options])
        return status, *capsys.readouterr()

    assert told("--require", "gpu")[:2] == (0, "")
    site.edit("site/part/page/index.html", "<mn>2</mn>", "<mn>3</mn>")
    status, out, err = told()
    assert (status, out.count("\n")) == (1, 1)
    assert out.startswith(f"{PAGE}:1: the built site is not of its sources: ")
    assert "1 faults, 0 warnings" in err
    # What lacks a GPU's record is a warning, until it is required.
    (site.root / RECORD).unlink()
    site.verify("", one={})
    site.build()
    reason = "no GPU has a record of it"
    status, out, _ = told()
    assert (status, f"{TWO}:1: warning: {reason}" in out) == (0, True)
    status, out, _ = told("--require", "gpu")
    assert (status, f"{TWO}:1: {reason}" in out) == (1, True)
    assert "output 'part/one.py' is that of the interpreter" in out
    site.write({"snippets/part/new.py": "x = (\n"})  # on no page
    status, _, err = told()
    assert (status, "part/new.py:1: syntax error" in err) == (1, True)
    shutil.rmtree(site.root / "site")
    status, _, err = told()
    assert (status, "site: no built site; run `make site` first" in err) == (1, True)
