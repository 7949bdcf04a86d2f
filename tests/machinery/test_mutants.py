"""The judge of mutants, on a tree with one snippet."""

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
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
    "pytest.ini": """[pytest]
addopts = --import-mode=importlib
pythonpath = .
markers = demo: left out
""",
    "snippets/part/double.py": """import time

def double(x):
    for _ in range(2 - 1):
        time.sleep(0)
    return 2 * x
""",
    TEST: """from snippets.part import double
from tests.harness.helper import InterpreterError

def test_of_three():
    try:
        found = double.double(3)
    except TypeError as error:
        raise InterpreterError from error
    assert found == 6
""",
    "tests/__init__.py": "",
    "tests/harness/helper.py": "class InterpreterError(Exception): pass\n",
    "tests/mutants/judge.py": "# the judge\n",
    "tests/conftest.py": """from hypothesis import settings
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
    Repository(folder).write(FILES)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with closing(Server(folder, tmp_path_factory.mktemp("bugs"), 60)) as server:
        yield server


def judged(root: Path, server: Server, *mutants: Mutant) -> list[str]:
    """What is wrong with the mutants, or else the tests that caught them."""
    caught, faults = judge(root, SNIPPET, dict.fromkeys(mutants, ""), server.run)
    return faults or list(caught.values())


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


def test_a_test_that_does_not_end_catches_only_what_may_hang(root, tmp_path):
    ends = Mutant("time.sleep(0)", "time.sleep(1000)", "bug")
    hangs = replace(ends, may_hang=True)
    with closing(Server(root, tmp_path, 2)) as server:
        (fault,) = judged(root, server, ends)
        assert fault.endswith("'bug': a test takes too long")
        assert judged(root, server, hangs) == [""]


def test_a_test_that_fails_anyway_catches_nothing(root, server):
    Repository(root).edit(TEST, "== 6", "== 7")
    (fault,) = judged(root, server, BUG)
    assert "test_of_three fails without any mutant" in fault
    assert "found == 7" in fault


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


def known(root: Path) -> set[Mutant]:
    """Which of the two have a fresh verdict."""
    return {each for each in (BUG, OTHER) if Verdicts(root, SNIPPET).fresh(each)}


def test_a_verdict_is_fresh_until_something_that_it_depends_on_changes(root):
    assert known(root) == set()
    Verdicts(root, SNIPPET).save(CAUGHT, [])
    for name in FILES:
        assert known(root) == {BUG}
        right = (root / name).read_text()
        (root / name).write_text(f"{right}\n")
        assert known(root) == set(), name
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


def test_workers_save_pieces_of_one_snippet(root):
    one, two = Verdicts(root, SNIPPET), Verdicts(root, SNIPPET)
    one.save(CAUGHT, [OTHER])
    two.save(ALSO, [BUG])
    assert known(root) == {BUG, OTHER}
    # Tried again, it was not caught; and the other is of the list no more.
    Verdicts(root, SNIPPET).save({}, [OTHER])
    assert known(root) == {OTHER}
    Verdicts(root, SNIPPET).save({}, [])
    assert known(root) == set()


def test_a_verdict_on_other_files_does_not_stay(root):
    Verdicts(root, SNIPPET).save(CAUGHT, [])
    Repository(root).edit(TEST, "== 6", "== 2 * 3")
    Verdicts(root, SNIPPET).save(ALSO, [BUG])
    assert known(root) == {OTHER}


def test_a_bug_that_one_gpu_caught_is_caught(root):
    Verdicts(root, SNIPPET).save(CAUGHT, [], "NVIDIA H200")
    Verdicts(root, SNIPPET).save({}, [BUG])  # What was not tried is not written.
    assert not (root / RECORD).exists()
    assert (root / "records/gpu/mutants.json").exists()
    # Those of another machine, of other files, do not hide it.
    Repository(root).edit(TEST, "== 6", "== 2 * 3")
    assert known(root) == set()
    Verdicts(root, SNIPPET).save(ALSO, [])
    Repository(root).edit(TEST, "== 2 * 3", "== 6")
    assert BUG in known(root)
