"""`python -m verified_docs status`."""

import hashlib
from pathlib import Path

import pytest

from verified_docs import layout
from verified_docs.__main__ import main
from verified_docs.evidence import records, table
from verified_docs.evidence.records import Entry


def entry(root: Path, name: str) -> Entry:
    files = (f"snippets/part/{name}.py", f"tests/snippets/part/test_{name}.py")
    manifest = {f: hashlib.sha256((root / f).read_bytes()).hexdigest() for f in files}
    skipped = {"a": "b"} if name == "b" else {}
    return Entry("a run", "passed", [], 20, skipped, {}, "", "", manifest)


def save(root: Path, file: str, gpu: str, *entries: tuple[str, Entry]) -> None:
    runs = {"a run": {"gpu": gpu, "date": "2026-11-21"}}
    snippets = {f"part/{name}.py": {"": entry} for name, entry in entries}
    records.save(records.Verification(root / file, runs, snippets))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        for path in (f"snippets/part/{name}.py", f"tests/snippets/part/test_{name}.py"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("VALUE = 1\n")
    (tmp_path / "docs/part").mkdir(parents=True)
    (tmp_path / "docs/part/page.md").write_text(
        '```python\n--8<-- "part/a.py:x"\n```\n'
    )
    (tmp_path / "docs/diff.md").write_text(
        '```diff from="part/a.py:x" to="part/b.py:x"\n\n```\n', "utf-8"
    )
    (tmp_path / "docs/book.ipynb").write_text(r'"source": ["--8<-- \"part/b.py:x\""]')
    return tmp_path


def rows(root: Path) -> dict[str, list[str]]:
    lines = table.table(root).split("\n\n")[0].splitlines()
    cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_nothing_is_recorded_yet(root: Path) -> None:
    assert rows(root) == {
        "snippet": ["pages", "interpreter", "GPU"],
        "part/a.py": ["diff.md, part/page.md", "not run", "not run"],
        "part/b.py": ["book.ipynb, diff.md", "not run", "not run"],
        "part/c.py": ["none", "not run", "not run"],
    }


def test_each_gpu_has_a_column_and_each_fault_a_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = entry(root, "a"), entry(root, "b")
    h200, l4 = (layout.verification_file(gpu) for gpu in ("NVIDIA H200", "NVIDIA L4"))
    save(root, h200, "NVIDIA H200", ("a", a), ("b", b))
    failed = Entry("a run", "failed", ["test_x"], 19, {}, {}, "", "", a.manifest)
    save(root, l4, "NVIDIA L4", ("a", failed))
    save(root, layout.INTERPRETER, "", ("b", b))
    found = rows(root)
    assert found["snippet"][1:] == ["interpreter", "nvidia-h200", "nvidia-l4"]
    passed = "fresh (20 passed, 1 skipped)"
    assert found["part/a.py"][1:] == [
        "not run",
        "fresh (20 passed)",
        "failed (19 passed)",
    ]
    assert found["part/b.py"][1:] == [passed, passed, "not run"]
    (root / "tests/snippets/part/test_b.py").write_text("changed")
    assert main(["status", "--root", str(root)]) == 0
    assert capsys.readouterr().out.split("\n\n")[1].splitlines() == [
        "part/a.py: failed on nvidia-l4: test_x",
        "part/b.py: stale on nvidia-h200: tests/snippets/part/test_b.py",
        "part/b.py: stale on interpreter: tests/snippets/part/test_b.py",
    ]


def test_a_record_that_cannot_be_read_is_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "records/nvidia-h200/verification.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"snippets"')
    assert main(["status", "--root", str(root)]) == 1
    assert f"{path}: not JSON" in capsys.readouterr().err


def test_unknown_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "--rot", "x"])
    assert "unrecognized arguments: --rot x" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([])


def test_check_gets_its_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    from verified_docs import check

    seen = []

    def fake(arguments: list[str]) -> int:
        seen.append(arguments)
        return 3

    monkeypatch.setattr(check, "main", fake)
    assert main(["check", "--require", "gpu", "--root", "x", "--help"]) == 3
    assert seen == [["--require", "gpu", "--root", "x", "--help"]]


def test_a_page_about_the_metadata_of_cells_shows_no_snippet(root: Path) -> None:
    (root / "docs/help.md").write_text('Write `{"snippet": "part/c.py:x"}`.\n')
    (root / "docs/book.ipynb").write_text('{"snippet": "part/b.py:x"}\n')
    assert rows(root)["part/c.py"][0] == "none"
    assert rows(root)["part/b.py"][0] == "book.ipynb, diff.md"


def test_the_pages_of_a_snippet(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pages", "part/a.py", "--root", str(root)]) == 0
    assert capsys.readouterr().out == "diff or part/page\n"
    assert main(["pages", "part/c.py", "--root", str(root)]) == 0
    assert capsys.readouterr().out == "none\n"
