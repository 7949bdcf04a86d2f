"""Each bug in tests/mutants must make the tests of its snippet fail.

What is known to be caught is not tried again; with ALL=1 in the environment it is.
Where there is no GPU, the bugs of a snippet that only a GPU runs are not tried.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mutants import Mutant
from tests.mutants.judge import judge, pieces
from tests.mutants.server import Server
from tests.mutants.verdicts import Verdicts
from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.evidence import machine

ROOT = Path(__file__).parents[2]
SECONDS = 40


def table(snippet: str) -> list[Mutant]:
    """The bugs of a snippet; each has a name of its own."""
    name = layout.mutants_file(snippet).removesuffix(".py").replace("/", ".")
    mutants = importlib.import_module(name).MUTANTS
    names = {mutant.why for mutant in mutants}
    assert 0 < len(mutants) == len(names), "there are none, or two of one name"
    return mutants


def faults(snippet: str, mutants: list[Mutant]) -> Iterator[str]:
    """The bugs that do not fit into their snippet, and why."""
    text = (ROOT / layout.snippet_file(snippet)).read_text("utf-8")
    for mutant in mutants:
        try:
            mutant.apply(text)
        except ValueError as error:
            yield f"{layout.mutants_file(snippet)}: {error}"


TABLES = {snippet: table(snippet) for snippet in layout.names(ROOT)}
if FAULTS := [fault for each in TABLES.items() for fault in faults(*each)]:
    raise ValueError("\n".join(FAULTS))
# As they are before any worker saves its own.
VERDICTS = {snippet: Verdicts(ROOT, snippet) for snippet in TABLES}
PIECES = [
    pytest.param(snippet, piece, id=f"{snippet}-{number}")
    for snippet, mutants in TABLES.items()
    for number, piece in enumerate(pieces(mutants))
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The process that runs the tests."""
    folder = tmp_path_factory.mktemp("mutants")
    with closing(Server(ROOT, folder, SECONDS)) as server:
        yield server


@pytest.mark.parametrize(("snippet", "piece"), PIECES)
def test_are_caught(snippet: str, piece: list[Mutant], server: Server) -> None:
    gpu = machine.gpu_name() if snippets.load(ROOT, snippet).gpu_only else ""
    verdicts = VERDICTS[snippet]
    due = [m for m in piece if os.environ.get("ALL") or not verdicts.fresh(m)]
    if due and gpu is None:
        pytest.skip(f"only a GPU can judge it; {len(due)} of {len(piece)} bugs are due")
    hints = {mutant: verdicts.hint(mutant) for mutant in due}
    caught, faults = judge(ROOT, snippet, hints, server.run)
    others = [mutant for mutant in TABLES[snippet] if mutant not in due]
    verdicts.save(caught, others, gpu or "")
    assert not faults, "\n".join(faults)
