"""`python -m verified_docs status`."""

from dataclasses import replace
from pathlib import Path

import pytest

from verified_docs.__main__ import main
from verified_docs.evidence import records, table
from verified_docs.evidence.records import Entry, Environment

ENVIRONMENT = Environment(
    "NVIDIA H200", "9.0", "580", "13.0", "2.11", "3.6", "3.12", ""
)


def entry(root: Path, name: str) -> Entry:
    test = f"tests/snippets/part/test_{name}.py"
    return Entry(
        sha256=records.file_hash(root / f"snippets/part/{name}.py"),
        test=test,
        test_sha256=records.test_hash(root, test),
        cases=7,
        skipped=["a: b"] if name == "b" else [],
        errors={},
        output="",
        environment=ENVIRONMENT,
    )


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
    (root / "tests/snippets/part/test_c.py").unlink()
    assert rows(root) == {
        "snippet": ["pages", "tests", "interpreter", "GPU"],
        "part/a.py": ["diff.md, part/page.md", "yes", "missing", "missing"],
        "part/b.py": ["book.ipynb, diff.md", "yes", "missing", "missing"],
        "part/c.py": ["none", "none", "missing", "missing"],
    }


def test_each_gpu_has_a_column(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = entry(root, "a"), entry(root, "b")
    for gpu, entries in {
        "nvidia-h200": {"part/a.py": a, "part/b.py": b, "part/gone.py": a},
        "nvidia-l4": {"part/a.py": replace(a, sha256="0" * 64)},
    }.items():
        path = root / "records" / gpu / records.VERIFICATION
        records.save(records.Verification(path, entries))
    path = root / records.INTERPRETER
    records.save(records.Verification(path, {"part/b.py": b}))

    found = rows(root)
    assert found["snippet"][2:] == ["interpreter", "nvidia-h200", "nvidia-l4"]
    assert found["part/a.py"][2:] == ["missing", "fresh (7 passed)", "stale (7 passed)"]
    assert found["part/b.py"][2:] == [
        "fresh (7 passed, 1 skipped)",
        "fresh (7 passed, 1 skipped)",
        "missing",
    ]
    (root / "tests/snippets/part/test_b.py").write_text("changed")
    assert rows(root)["part/b.py"][2].startswith("stale")

    assert main(["status", "--root", str(root)]) == 0
    assert "nvidia-h200: has a record of part/gone.py, which is not there" in (
        capsys.readouterr().out
    )


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
