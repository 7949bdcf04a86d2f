"""The judge of mutants, on a tree with one snippet."""

import json
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.machinery.repository import Repository
from tests.mutants import Mutant
from tests.mutants.judge import MOST, judge, pieces
from tests.mutants.server import Server
from tests.mutants.verdicts import Verdicts
from verified_docs import layout

RECORD = layout.verdicts_file()
SNIPPET = "part/double.py"
TEST = "tests/snippets/part/test_double.py"
FILES = {
    "pytest.ini": """
        [pytest]
        addopts = --import-mode=importlib
        pythonpath = .
        markers = demo: left out
        """,
    "snippets/part/double.py": """
        import time

        def double(x):
            for _ in range(2 - 1):
                time.sleep(0)
            return 2 * x
        """,
    TEST: """
        from snippets.part import double
        from tests.harness.helper import InterpreterError

        def test_of_three():
            try:
                found = double.double(3)
            except TypeError as error:
                raise InterpreterError from error
            assert found == 6
        """,
    "tests/__init__.py": "",
    "tests/harness/helper.py": """
        class InterpreterError(Exception):
            pass
        """,
    "tests/mutants/judge.py": "# the judge\n",
    "tests/conftest.py": """
        from hypothesis import settings

        settings.register_profile("mutant")
        """,
}
BUG = Mutant("2 * x", "3 * x", "bug")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture
def root(folder: Path) -> Path:
    shutil.rmtree(folder)
    files = {name: textwrap.dedent(text).lstrip("\n") for name, text in FILES.items()}
    Repository(folder).write(files)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with closing(Server(folder, tmp_path_factory.mktemp("bugs"), 60)) as server:
        yield server


def judged(root: Path, server: Server, *mutants: Mutant, hint: str = "") -> list[str]:
    """What is wrong with the mutants, or else the tests that caught them."""
    caught, faults = judge(root, SNIPPET, dict.fromkeys(mutants, hint), server.run)
    return faults or list(caught.values())


@contextmanager
def alone(root: Path, seconds: int = 60) -> Iterator[Server]:
    """A server that has seen no other tests, nor another folder at its place."""
    bugs = root.parent / "more"
    bugs.mkdir(exist_ok=True)
    with closing(Server(root, bugs, seconds)) as server:
        yield server


def test_each_bug_that_the_tests_see_is_caught_and_no_file_changes(root, server):
    right = (root / "snippets" / SNIPPET).read_text()
    mutants = BUG, Mutant("2 * x", "x", "other"), Mutant("2 - 1", "0", "none")
    caught, (fault,) = judge(root, SNIPPET, dict.fromkeys(mutants, ""), server.run)
    assert caught == dict.fromkeys(mutants[:2], "test_of_three")
    assert fault == "part/double.py, 'none': the tests pass nevertheless"
    assert (root / "snippets" / SNIPPET).read_text() == right


@pytest.mark.parametrize(
    ("new", "fault"),
    [
        ("x + x", "the tests pass nevertheless"),
        ("2 *", r"cannot be run.*SyntaxError"),
        ("2 * x + None", "test_of_three .* does not compile.*InterpreterError"),
        ("__import__('os')._exit(1)", "cannot be run: the process ended"),
    ],
)
def test_what_does_not_count_as_caught(new, fault, root, server):
    (found,) = judged(root, server, Mutant("2 * x", new, "bug"))
    assert re.search(fault, found, re.DOTALL)


def test_what_does_not_compile_counts_if_said_or_if_another_test_sees_it(root, server):
    bug = Mutant("2 * x", "2 * x + None", "bug", may_not_compile=True)
    assert judged(root, server, bug) == ["test_of_three"]
    first = "def test_first():\n    if double.double(3) != 6: raise InterpreterError\n"
    Repository(root).edit(TEST, "def test_of", f"{first}\ndef test_of")
    assert judged(root, server, BUG) == ["test_of_three"]


def test_the_limit_is_of_one_test_and_of_one_setup(root):
    slow = """
        import time, pytest
        from snippets.part import double

        @pytest.fixture
        def turn():
            time.sleep(1.2)

        @pytest.mark.parametrize("x", [0, 1])
        def test_slow(x, turn):
            time.sleep(1.2)
            double.double(x)
    """
    (root / TEST).write_text(textwrap.dedent(slow))
    ends = Mutant("time.sleep(0)", "time.sleep(1000)", "bug")
    hangs = replace(ends, may_hang=True)
    assert hangs.key == ends.key
    with alone(root, seconds=2) as server:
        passes, takes = judged(root, server, BUG, ends, hangs)
    assert passes.endswith("the tests pass nevertheless")
    assert takes.endswith("'bug': a test takes too long")


def test_a_test_that_fails_anyway_catches_nothing(root, server):
    Repository(root).edit(TEST, "== 6", "== 7")
    (fault,) = judged(root, server, BUG)
    assert "test_of_three fails without any mutant" in fault
    assert "found == 7" in fault


def test_fixtures_that_cannot_be_imported_catch_nothing(root):
    (root / "tests/conftest.py").write_text("import nowhere\n")
    with alone(root) as server:
        (fault,) = judged(root, server, BUG)
    assert "cannot be run: pytest cannot start" in fault


def test_hints_and_refusals_are_tried_first_and_properties_last(root):
    tests = """
        from hypothesis import given, strategies
        from snippets.part import double

        @given(strategies.integers())
        def test_any(x):
            assert double.double(x) == x + x

        def test_of_two():
            assert double.double(2) == 4

        def test_refuses():
            assert double.double(1) == 2
    """
    (root / TEST).write_text(textwrap.dedent(tests))
    seen_by_two = Mutant("2 * x", "2 * x + (x > 1)", "other")
    first = ["test_refuses", "test_of_two"]
    with alone(root) as server:
        assert judged(root, server, BUG, seen_by_two) == first
        assert judged(root, server, BUG, hint="test_that_is_gone") == first[:1]
        for hint in ("test_any", "test_of_two"):  # What caught it before.
            assert judged(root, server, BUG, hint=hint) == [hint]


def test_each_mutant_is_in_one_piece_and_no_piece_is_long():
    for number in (1, MOST, MOST + 1, 51):
        mutants = [Mutant("x", "y", f"{i}") for i in range(number)]
        found = pieces(mutants)
        assert sorted(chain(*found), key=mutants.index) == mutants
        assert max(map(len, found)) <= MOST


@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        (Mutant("4 * x", "x", "bug"), "'bug': '4 . x' occurs 0 times, not 1"),
        (Mutant("2", "3", "bug"), "occurs 2 times, not 1"),
        (Mutant("2 * x", "x", "bug", count=2), "occurs 1 times, not 2"),
        (Mutant("2 * x", "2 * x", "bug"), "the same text"),
    ],
)
def test_a_mutation_that_does_not_fit_is_an_error(mutant, reason):
    with pytest.raises(ValueError, match=reason):
        mutant.apply(FILES["snippets/part/double.py"])


# The record.


OTHER = Mutant("2 * x", "4 * x", "other")
CAUGHT, ALSO = ({each: "test_of_three"} for each in (BUG, OTHER))


@pytest.fixture
def known(root: Path) -> Callable[[], set[Mutant]]:
    """Which of the two have a fresh verdict."""

    def fresh() -> set[Mutant]:
        return {each for each in (BUG, OTHER) if Verdicts(root, SNIPPET).fresh(each)}

    return fresh


def test_a_verdict_is_fresh_until_something_that_it_depends_on_changes(root, known):
    assert known() == set()
    Verdicts(root, SNIPPET).save(CAUGHT, [])
    for name in FILES:
        assert known() == {BUG}
        right = (root / name).read_text()
        (root / name).write_text(f"{right}\n")
        assert known() == set(), name
        assert Verdicts(root, SNIPPET).hint(BUG) == "test_of_three"
        (root / name).write_text(right)
    found = Verdicts(root, SNIPPET)
    for other in (Mutant("2 * x", "4 * x", "bug"), Mutant("2 * x", "3 * x", "bugs")):
        assert not found.fresh(other)
    assert found.hint(Mutant("2 * x", "4 * x", "bug")) == "test_of_three"


def test_what_changed_while_it_was_judged_is_not_recorded(root):
    verdicts = Verdicts(root, SNIPPET)
    Repository(root).edit(TEST, "== 6", "== 7")
    verdicts.save(CAUGHT, [])
    assert not (root / RECORD).exists()


def test_workers_save_pieces_of_one_snippet(root, known):
    one, two = Verdicts(root, SNIPPET), Verdicts(root, SNIPPET)
    one.save(CAUGHT, [OTHER])
    two.save(ALSO, [BUG])
    assert known() == {BUG, OTHER}
    # Tried again, it was not caught; and the other is of the list no more.
    Verdicts(root, SNIPPET).save({}, [OTHER])
    assert known() == {OTHER}
    Verdicts(root, SNIPPET).save({}, [])
    assert known() == set()


def test_a_verdict_on_other_files_does_not_stay(root, known):
    Verdicts(root, SNIPPET).save(CAUGHT, [])
    Repository(root).edit(TEST, "== 6", "== 2 * 3")
    Verdicts(root, SNIPPET).save(ALSO, [BUG])
    assert known() == {OTHER}


def test_a_snippet_that_is_gone_leaves_the_record(root):
    Verdicts(root, SNIPPET).save(CAUGHT, [])
    (root / "snippets" / SNIPPET).rename(root / "snippets/part/twice.py")
    (root / TEST).rename(root / "tests/snippets/part/test_twice.py")
    Verdicts(root, "part/twice.py").save(CAUGHT, [])
    assert [*json.loads((root / RECORD).read_text())["snippets"]] == ["part/twice.py"]


def test_a_bug_that_one_gpu_caught_is_caught(root, known):
    Verdicts(root, SNIPPET).save(CAUGHT, [], "NVIDIA H200")
    Verdicts(root, SNIPPET).save({}, [BUG])  # What was not tried is not written.
    assert not (root / RECORD).exists()
    assert (root / "records/gpu/mutants.json").exists()
    assert known() == {BUG}
    # Another GPU, which judges the rest, does not hide it.
    Verdicts(root, SNIPPET).save(ALSO, [BUG], "NVIDIA H100")
    assert known() == {BUG, OTHER}
    # Those of another machine, of other files, do not hide them.
    Repository(root).edit(TEST, "== 6", "== 2 * 3")
    assert known() == set()
    Verdicts(root, SNIPPET).save(ALSO, [])
    Repository(root).edit(TEST, "== 2 * 3", "== 6")
    assert BUG in known()
