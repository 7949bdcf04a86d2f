"""Each bug in tests/mutants must make the tests of its snippet fail."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mutants import Mutant, caught_by
from tests.mutants.runner import Tree

ROOT = Path(__file__).parents[2]


def tables() -> tuple[dict[str, list[Mutant]], dict[str, Exception]]:
    """The bugs of every snippet that has tests, by its name.

    A module that cannot be imported has an exception instead: the others go on.
    """
    found, errors = {}, {}
    folder = ROOT / "tests" / "snippets"
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder)
        snippet = name.with_name(name.name.removeprefix("test_"))
        module = ".".join(("tests", "mutants", *snippet.with_suffix("").parts))
        try:
            found[snippet.as_posix()] = importlib.import_module(module).MUTANTS
        except Exception as error:
            found[snippet.as_posix()] = []
            errors[snippet.as_posix()] = error
    return found, errors


TABLES, ERRORS = tables()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """The copy of the tree that the mutants are planted in."""
    folder = tmp_path_factory.mktemp("mutants")
    with closing(Tree(ROOT, folder, caught_by=caught_by.read())) as tree:
        yield tree


@pytest.mark.parametrize(
    ("snippet", "mutant"),
    [
        pytest.param(snippet, mutant, id=f"{snippet}: {mutant.why}")
        for snippet, table in TABLES.items()
        for mutant in table
    ],
)
def test_is_caught(
    tree: Tree, snippet: str, mutant: Mutant, record_property: Callable
) -> None:
    verdict = tree.demand_caught(snippet, mutant)
    record_property("caught_by", (snippet, mutant.why, verdict.failed))


@pytest.mark.parametrize("snippet", TABLES)
def test_every_snippet_has_mutants(snippet: str) -> None:
    if snippet in ERRORS:
        raise ERRORS[snippet]
    assert TABLES[snippet], f"there are no bugs of {snippet}"
