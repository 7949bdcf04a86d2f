"""The judge of mutants, on a tree with one snippet."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mutants import Mutant, caught_by
from tests.mutants.runner import Survived, Tree

FILES = {
    "pyproject.toml": """
        [tool.pytest.ini_options]
        addopts = ["--import-mode=importlib"]
        pythonpath = ["."]
        markers = ["demo: left out"]
        """,
    "snippets/part/double.py": """
        import time

        def double(x):
            for _ in range(2 - 1):
                time.sleep(0)
            return 2 * x
        """,
    "tests/snippets/part/test_double.py": """
        import pytest
        from snippets.part import double

        class InterpreterError(Exception):
            pass

        def test_of_three():
            try:
                found = double.double(3)
            except TypeError as error:
                raise InterpreterError from error
            assert found == 6
        """,
    "tests/conftest.py": """
        from hypothesis import settings

        settings.register_profile("mutant")
        """,
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("\n        ", "\n").lstrip("\n"))


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    write(tmp_path / "root", FILES)
    with closing(Tree(tmp_path / "root", tmp_path / "copy", seconds=30)) as tree:
        yield tree


def caught(tree: Tree, old: str, new: str, **options: object) -> None:
    verdict = tree.demand_caught("part/double.py", Mutant(old, new, "bug", **options))
    assert verdict.failed == "test_of_three"


def append(tree: Tree, test: str) -> None:
    with (tree.folder / "tests/snippets/part/test_double.py").open("a") as file:
        file.write(test.replace("\n        ", "\n"))


def test_a_bug_that_the_tests_see_is_caught(tree: Tree) -> None:
    caught(tree, "2 * x", "3 * x")


def test_the_copy_is_whole_again_and_the_original_untouched(tree: Tree) -> None:
    caught(tree, "2 * x", "3 * x")
    for folder in (tree.folder, tree.root):
        assert "2 * x" in (folder / "snippets/part/double.py").read_text()
    caught(tree, "2 * x", "x")


def test_a_bug_that_the_tests_miss_survives(tree: Tree) -> None:
    with pytest.raises(Survived, match=r"tests of .*test_double.py pass nevertheless"):
        caught(tree, "2 * x", "x + x")


def test_a_mutant_that_is_no_python_is_not_caught(tree: Tree) -> None:
    with pytest.raises(Survived, match=r"(?s)cannot be run.*SyntaxError"):
        caught(tree, "2 * x", "2 *")


def test_a_mutant_that_does_not_compile_counts_only_if_said(tree: Tree) -> None:
    with pytest.raises(Survived, match=r"does not compile .*InterpreterError"):
        caught(tree, "2 * x", "2 * x + None")
    caught(tree, "2 * x", "2 * x + None", may_not_compile=True)


def test_one_test_that_sees_the_bug_is_enough(tree: Tree) -> None:
    append(
        tree,
        """
        def test_refuses_to_compile():  # its name puts it first
            if double.double(3) != 6:
                raise InterpreterError
        """,
    )
    caught(tree, "2 * x", "3 * x")


def test_what_the_tests_share_may_import_the_snippet(tree: Tree) -> None:
    shared = "from snippets.part import double\n"
    (tree.folder / "tests/snippets/part/shared.py").write_text(shared)
    path = tree.folder / "tests/snippets/part/test_double.py"
    old, new = "from snippets.part import", "from tests.snippets.part.shared import"
    path.write_text(path.read_text().replace(old, new))
    caught(tree, "2 * x", "3 * x")
    caught(tree, "2 * x", "x")


def test_fixtures_that_cannot_be_imported_catch_nothing(tree: Tree) -> None:
    (tree.folder / "tests/conftest.py").write_text("import nowhere\n")
    for _ in range(2):
        with pytest.raises(Survived, match=r"(?s)cannot be run.*nowhere"):
            caught(tree, "2 * x", "3 * x")


def test_a_mutant_that_never_ends_is_killed(tree: Tree) -> None:
    tree.seconds = 3
    with pytest.raises(Survived, match="still ran after 3 s"):
        caught(tree, "time.sleep(0)", "time.sleep(1000)")


def test_a_mutant_that_ends_the_process_is_not_caught(tree: Tree) -> None:
    with pytest.raises(Survived, match="cannot be run"):
        caught(tree, "return 2 * x", "import os; os._exit(1)")


def test_a_test_that_fails_anyway_catches_nothing(tree: Tree) -> None:
    path = tree.folder / "tests/snippets/part/test_double.py"
    path.write_text(path.read_text().replace("== 6", "== 7"))
    with pytest.raises(Survived, match=r"(?s)fails without any mutant.*found == 7"):
        caught(tree, "2 * x", "3 * x")


@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        (Mutant("4 * x", "x", "bug"), "occurs 0 times, not 1"),
        (Mutant("2", "3", "bug"), "occurs 2 times, not 1"),
        (Mutant("2 * x", "x", "bug", count=2), "occurs 1 times, not 2"),
        (Mutant("2 * x", "2 * x", "bug"), "the same text"),
    ],
)
def test_a_mutation_that_does_not_fit_is_an_error(
    tree: Tree, mutant: Mutant, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        tree.demand_caught("part/double.py", mutant)


def test_what_caught_it_before_is_tried_first(tree: Tree) -> None:
    append(
        tree,
        """
        def test_of_four():
            assert double.double(4) == 8
        """,
    )
    bug = Mutant("2 * x", "3 * x", "bug")
    for test in ("test_of_three", "test_of_four"):
        tree.caught_by = {"part/double.py": {"bug": test}}
        assert tree.demand_caught("part/double.py", bug).failed == test
    tree.caught_by = {"part/double.py": {"bug": "test_that_is_gone"}}
    assert tree.demand_caught("part/double.py", bug).failed


def test_what_is_learnt_is_added_to_what_is_known(tmp_path: Path) -> None:
    file = tmp_path / "caught_by.json"
    listed = {"a.py": ["bug", "other"], "b.py": ["bug"]}
    assert caught_by.read(file) == {}
    caught_by.write({"a.py": {"bug": "test_x", "other": "test_y"}}, listed, file)
    found = {"a.py": {"bug": "test_z"}, "b.py": {"bug": "test_x"}}
    caught_by.write(found, listed, file)
    assert caught_by.read(file) == {
        "a.py": {"bug": "test_z", "other": "test_y"},
        "b.py": {"bug": "test_x"},
    }
    caught_by.write({}, {"a.py": ["other", "new"]}, file)
    assert caught_by.read(file) == {"a.py": {"other": "test_y"}}
