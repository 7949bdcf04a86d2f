"""The check of snippets, tests, records and navigation, and its command."""

import json
import shutil

import pytest

from tests.machinery import small_site
from verified_docs.__main__ import main
from verified_docs.check import Weight

ONE = "snippets/part/one.py"
TWO = "snippets/part/two.py"
RECORD = f"records/{small_site.GPU}/verification.json"
BENCH = f"records/{small_site.GPU}/part.json"
# Edits of the markers of a snippet: (name, old, new, where in the new file, reason).
MARKERS = [
    ("no end", "# --8<-- [end:demo]", "", "[start:demo]", "has no [end:demo] after it"),
    ("misspelt end", "[end:demo]", "[end:dome]", "[end:dome]", "ends no open section"),
    ("bad name", "[start:demo]", "[start:De-mo]", "De-mo", "'De-mo' is no name"),
    ("no marker", "[start:demo]", "[begin:demo]", "begin", "is no marker"),
    ("twice", "[start:demo]", "[start:kernel]", "[start:kernel]", "already starts at"),
    ("empty", "[end:kernel]", "[end:kernel]\n# --8<-- [start:e]\n# --8<-- [end:e]",
     "[start:e]", "section 'e' is empty"),
    ("lost line", "    total = x + x\n    return total", "", "[line:", "names no line"),
    ("syntax", "total = x + x", "total = = x", "total = =", "syntax error"),
]  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return small_site.sound(tmp_path_factory.getbasetemp() / "sound")


@pytest.fixture
def site(sound, tmp_path):
    return small_site.copy(sound, tmp_path / "copy")


def told(root):
    return [f"{f} [{f.weight.name}]" for f in small_site.found(root)]


def matches(root, *reasons):
    """The findings in the sources are these, and no others, in their order."""
    found = [text for text in told(root) if not text.startswith("site/")]
    assert len(found) == len(reasons), found
    for text, reason in zip(found, reasons, strict=True):
        assert reason in text


@pytest.mark.parametrize(
    ("old", "new", "where", "reason"),
    [marker[1:] for marker in MARKERS],
    ids=[marker[0] for marker in MARKERS],
)
def test_markers(site, old, new, where, reason):
    small_site.edit(site, ONE, old, new)
    own = [f for f in small_site.found(site) if f.path == ONE]
    assert len(own) == 1
    assert reason in own[0].reason
    if where != "[start:kernel]":  # There are two of these; the second is at fault.
        lines = [small_site.line_of(site / ONE, where)]
        assert own[0].line in (lines[0], lines[0] + 1)


def test_a_snippet_on_no_page(site):
    (site / "snippets/part/new.py").write_text("X = 1\n")
    shutil.copy(site / "tests/snippets/part/test_one.py",
                site / "tests/snippets/part/test_new.py")  # fmt: skip
    names = ("part/new.py", "part/one.py", "part/two.py")
    small_site.record(site, small_site.GPU, *names)
    path = "snippets/part/new.py"
    matches(site, f"{path}:1: no benchmark knows it", f"{path}:1: no page shows this")


def test_a_section_on_no_page(site):
    small_site.edit(site, "docs/part/page.md", '"part/one.py:demo"', '"part/two.py"')
    small_site.build(site)
    line = small_site.line_of(site / ONE, "[start:demo]")
    matches(site, f"{ONE}:{line}: no page shows the section 'demo' [FAULT]")


def test_an_inner_section_is_on_the_page_of_the_outer_one(site):
    text = (site / ONE).read_text()
    marked = "    # --8<-- [start:inner]\n    return total\n    # --8<-- [end:inner]"
    (site / ONE).write_text(text.replace("    return total", marked))
    small_site.record(site)
    small_site.build(site)
    assert told(site) == []


def test_a_snippet_without_tests(site):
    (site / "tests/snippets/part/test_two.py").unlink()
    test = "tests/snippets/part/test_two.py"
    assert f"{TWO}:1: there is no mirrored test module {test} [FAULT]" in told(site)


def test_a_test_module_without_tests(site):
    (site / "tests/snippets/part/test_two.py").write_text("TESTED = True\n")
    small_site.record(site)
    matches(site, "tests/snippets/part/test_two.py:1: the module has no test [FAULT]")


def test_tests_of_no_snippet(site):
    shutil.copy(site / "tests/snippets/part/test_one.py",
                site / "tests/snippets/part/test_gone.py")  # fmt: skip
    matches(site, "part/test_gone.py:1: no snippet has these tests")


def test_a_page_that_is_not_built(site):
    (site / "docs/new.md").write_text("# New\n")
    small_site.edit(site, "mkdocs.yml", "  - Page:", "  - New: new.md\n  - Page:")
    matches(site, "docs/new.md:1: the built site lacks this page; run `make site`")


def test_a_line_changed_in_a_snippet(site):
    small_site.edit(site, ONE, "total = x + x", "total = 2 * x")
    found = "\n".join(told(site))
    assert "is not the section in its file" in found
    assert "is not what its files say now: it has '- total = x + x'" in found
    assert f"{ONE}:1: stale on Test GPU: {ONE}" in found


def test_a_stale_benchmark_and_its_figures(site):
    entry = json.loads((site / BENCH).read_text())
    entry["manifest"]["snippets/part/two.py"] = "0" * 64
    (site / BENCH).write_text(json.dumps(entry, indent=2))
    small_site.build(site)
    found = small_site.found(site)
    assert {f.weight for f in found} == {Weight.RECORD}
    reasons = "\n".join(f.reason for f in found)
    assert "timed before these changed: snippets/part/two.py" in reasons
    assert "n=4 | us' is stale" in reasons


def test_a_figure_that_the_record_has_changed(site):
    small_site.edit(site, BENCH, "1.5e-06", "2.5e-06")
    small_site.copy(site / "records", site / "site/records")
    reasons = [f.reason for f in small_site.found(site)]
    assert len(reasons) == 2
    assert all("it has '1.50" in r or "it has 'kernel" in r for r in reasons), reasons


def test_a_figure_not_yet_measured(site):
    """The snippet is there, its first run on the GPU is not."""
    small_site.edit(
        site, "docs/part/page.md", "kernel=part/two.py", "kernel=part/one.py"
    )
    small_site.edit(site, "docs/part/page.md", " n=4", "")
    small_site.build(site)
    matches(site, "is not yet measured [RECORD]")


def test_a_snippet_that_no_benchmark_knows(site):
    small_site.edit(site, "benchmarks/part.py", '"one", ', "")
    matches(site, f"{ONE}:1: no benchmark knows it [WARNING]")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"error": 1e-07', '"error": 3e-07', "is 3e-07, which is not in 0 to 2e-07"),
        ('"cases": 3', '"cases": 0', "passed, though cases failed or none ran"),
    ],
)
def test_a_record_that_proves_nothing(site, old, new, reason):
    small_site.edit(site, RECORD, old, new)
    found = [f for f in small_site.found(site) if f.path == RECORD]
    assert len(found) == 1
    assert reason in found[0].reason


def test_a_record_of_a_snippet_that_is_gone(site):
    text = (site / RECORD).read_text()
    record = json.loads(text)
    text = json.dumps(record["snippets"]["part/one.py"]).replace("one.py", "gone.py")
    record["snippets"]["part/gone.py"] = json.loads(text)
    (site / RECORD).write_text(json.dumps(record, indent=2))
    matches(site, "record of part/gone.py, which is no snippet [RECORD]")


def test_the_quoted_gpu_has_no_records(site):
    small_site.edit(site, "mkdocs.yml", "gpu: test-gpu", "gpu: other-gpu")
    found = told(site)
    assert any("there are no records of the GPU 'other-gpu'" in f for f in found)


def test_two_gpus_and_none_is_quoted(site):
    small_site.record(site, "other-gpu")
    small_site.edit(site, "mkdocs.yml", "      gpu: test-gpu\n", "")
    reason = "there are records of other-gpu, test-gpu: set the option gpu to one"
    assert f"mkdocs.yml:1: {reason} [FAULT]" in told(site)


def test_the_command_prints_faults_and_fails(site, capsys):
    small_site.edit(site, "site/part/page/index.html", "<mn>2</mn>", "<mn>3</mn>")
    assert main(["check", "--root", str(site)]) == 1
    output = capsys.readouterr()
    assert output.out.startswith("docs/part/page.md:")
    assert output.out.count("\n") == 1
    assert "1 faults, 0 warnings" in output.err


def test_the_command_passes_the_sound_site(sound, capsys):
    assert main(["check", "--root", str(sound), "--require", "gpu"]) == 0
    assert capsys.readouterr().out == ""


def test_require_gpu_turns_warnings_into_faults(site, capsys):
    small_site.record(site, small_site.GPU, "part/one.py")
    small_site.build(site)
    assert main(["check", "--root", str(site)]) == 0
    assert f"{TWO}:1: warning: no GPU has a record of it" in capsys.readouterr().out
    assert main(["check", "--root", str(site), "--require", "gpu"]) == 1
    assert f"{TWO}:1: no GPU has a record of it" in capsys.readouterr().out


def test_without_a_site(site, capsys):
    shutil.rmtree(site / "site")
    assert main(["check", "--root", str(site)]) == 1
    assert "site: no built site; run `make site` first" in capsys.readouterr().err
