"""`python -m verified_docs status` and `pages`."""

import pytest

from tests.machinery.repository import H200, L4, Repository
from verified_docs.__main__ import main
from verified_docs.evidence import table

PAGES = {
    "docs/part/page.md": '```python\n--8<-- "softmax/online.py:x"\n```\n',
    "docs/diff.md": '```diff from="softmax/online.py" to="softmax/three_pass.py"\n',
    "docs/book.ipynb": r'"source": ["--8<-- \"softmax/three_pass.py:x\""]',
    "docs/help.md": 'Write `{"snippet": "softmax/none.py:x"}`.\n',
    "docs/cell.ipynb": '{"snippet": "softmax/three_pass.py:x"}\n',
}
ON_PAGES = {
    "softmax/none.py": "none",
    "softmax/online.py": "diff.md, part/page.md",
    "softmax/three_pass.py": "book.ipynb, cell.ipynb, diff.md",
}


@pytest.fixture(autouse=True)
def pages(repository: Repository) -> None:
    repository.write(PAGES)
    repository.snippet("softmax/none.py", "X = 1\n")


def rows(repository: Repository) -> dict[str, list[str]]:
    lines = table.table(repository.root).split("\n\n")[0].splitlines()
    cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_each_gpu_has_a_column_and_each_fault_a_line(repository, capsys):
    found = rows(repository)
    assert found.pop("snippet") == ["pages", "interpreter"]
    assert found == {n: [on, "not run"] for n, on in ON_PAGES.items()}
    repository.verify(H200, online={}, three_pass={"skipped": {"a": "b"}})
    repository.verify(L4, online={"state": "failed", "failed": ["test_x"], "cases": 9})
    repository.verify("", three_pass={})
    found = rows(repository)
    assert found["snippet"][1:] == ["interpreter", "nvidia-h200", "nvidia-l4"]
    fresh, skipped = "fresh (12 passed)", "fresh (12 passed, 1 skipped)"
    assert found["softmax/online.py"][1:] == ["not run", fresh, "failed (9 passed)"]
    assert found["softmax/three_pass.py"][1:] == [fresh, skipped, "not run"]
    test = "tests/snippets/softmax/test_three_pass.py"
    repository.write({test: "changed"})
    assert main(["--root", str(repository.root), "status"]) == 0
    assert capsys.readouterr().out.split("\n\n")[1].splitlines() == [
        "softmax/online.py: failed on nvidia-l4: test_x",
        f"softmax/three_pass.py: stale on nvidia-h200: {test}",
        f"softmax/three_pass.py: stale on interpreter: {test}",
    ]


def test_the_pages_of_a_snippet(repository, capsys):
    for snippet, shown in ("online", "diff or part/page\n"), ("none", "none\n"):
        command = ["--root", str(repository.root), "pages", f"softmax/{snippet}.py"]
        assert main(command) == 0
        assert capsys.readouterr().out == shown
