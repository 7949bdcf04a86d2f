"""Each mutation that a test module lists must make that module fail."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mutations import Mutation, caught_by
from tests.mutations.runner import Tree

ROOT = Path(__file__).parents[2]


def mutations() -> tuple[dict[str, list[Mutation]], dict[str, Exception]]:
    """The table of every test module, by the snippet that it mirrors.

    A module that cannot be imported has an exception instead: the others go on.
    """
    tables, errors = {}, {}
    folder = ROOT / "tests" / "snippets"
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder)
        snippet = name.with_name(name.name.removeprefix("test_")).as_posix()
        # Under a name of its own: pytest imports the module too, and rewrites it.
        spec = importlib.util.spec_from_file_location(f"mutations of {snippet}", path)
        module = importlib.util.module_from_spec(spec)
        tables[snippet] = []
        try:
            spec.loader.exec_module(module)
            tables[snippet] = getattr(module, "MUTATIONS", [])
        except Exception as error:
            errors[snippet] = error
    return tables, errors


TABLES, ERRORS = mutations()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """The copy of the tree that the mutations are planted in."""
    folder = tmp_path_factory.mktemp("mutants")
    with closing(Tree(ROOT, folder, caught_by=caught_by.read())) as tree:
        yield tree


@pytest.mark.parametrize(
    ("snippet", "mutation"),
    [
        pytest.param(snippet, mutation, id=f"{snippet}: {mutation.why}")
        for snippet, table in TABLES.items()
        for mutation in table
    ],
)
def test_is_caught(
    tree: Tree, snippet: str, mutation: Mutation, record_property: Callable
) -> None:
    verdict = tree.demand_caught(snippet, mutation)
    record_property("caught_by", (snippet, mutation.why, verdict.failed))


@pytest.mark.parametrize("snippet", TABLES)
def test_every_test_module_lists_mutations(snippet: str) -> None:
    if snippet in ERRORS:
        raise ERRORS[snippet]
    assert TABLES[snippet], f"the tests of {snippet} list no MUTATIONS"
