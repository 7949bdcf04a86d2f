"""Each bug in tests/mutants must make the tests of its snippet fail.

What is known to be caught is not tried again; with ALL=1 in the environment it is.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mutants import Mutant
from tests.mutants.judge import judge
from tests.mutants.server import Server
from tests.mutants.verdicts import Verdicts
from verified_docs import layout

ROOT = Path(__file__).parents[2]
SECONDS = 120


def table(snippet: str) -> list[Mutant]:
    """The bugs of a snippet; each fits it, and has a name of its own."""
    name = layout.mutants_file(snippet).removesuffix(".py").replace("/", ".")
    mutants = importlib.import_module(name).MUTANTS
    text = (ROOT / layout.snippet_file(snippet)).read_text("utf-8")
    for mutant in mutants:
        mutant.apply(text)
    names = [mutant.why for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice or not mutants:
        raise ValueError(f"there are no mutants, or two of one name: {twice}")
    return mutants


def tables() -> dict[str, list[Mutant]]:
    """The bugs of every snippet. Raises ValueError for all that do not fit at once."""
    found, faults = {}, []
    for snippet in layout.names(ROOT):
        try:
            found[snippet] = table(snippet)
        except Exception as error:
            faults.append(f"{layout.mutants_file(snippet)}: {error}")
    if faults:
        raise ValueError("\n".join(faults))
    return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The process that runs the tests."""
    folder = tmp_path_factory.mktemp("mutants")
    with closing(Server(ROOT, folder, SECONDS)) as server:
        yield server


TABLES = tables()


@pytest.mark.parametrize("snippet", TABLES)
def test_are_caught(snippet: str, server: Server) -> None:
    mutants, verdicts = TABLES[snippet], Verdicts(ROOT, snippet)
    due = [m for m in mutants if os.environ.get("ALL") or not verdicts.fresh(m)]
    hints = {mutant: verdicts.hint(mutant) for mutant in mutants}
    known = {m: hints.pop(m) for m in mutants if m not in due}
    caught, faults = judge(ROOT, snippet, hints, server.run)
    verdicts.save(known | caught)
    assert not faults, "\n".join(faults)
