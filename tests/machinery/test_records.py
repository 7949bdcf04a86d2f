"""Records: written whole, read with care, fresh only while the files are the same."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.machinery.repository import FACTS, H200, KEY, L4, ROOT, Repository
from verified_docs import layout
from verified_docs.evidence import records
from verified_docs.evidence.records import Entry, RecordError

NAME = "softmax/online.py"
SNIPPET, TEST = layout.snippet_file(NAME), layout.test_file(NAME)


@pytest.fixture
def entry(repository: Repository) -> Entry:
    return repository.entry(NAME, cases=27, output="größter Fehler 1e-7\n")


@pytest.fixture
def path(repository: Repository) -> Path:
    return repository.verify(H200, online={})


@pytest.fixture
def timed(repository: Repository) -> Path:
    return repository.measure([{"seconds": 1.0}])


# Changes of an entry, and why it is refused.
ENTRIES = [
    (lambda e: e.pop("run"), f"/snippets/{NAME}/{KEY}/run is missing"),
    (lambda e: e.update(run="another"), "run is not in the file"),
    (lambda e: e.update(cases=0), "passed, though cases failed or none ran"),
    (lambda e: e.update(failed=["a"]), "passed, though cases failed or none ran"),
    (lambda e: e.update(failed=[1]), "failed/0 is a int; it must be str"),
    (lambda e: e["errors"].clear(), "has no error, and no reason why there is none"),
    (lambda e: e["manifest"].pop(SNIPPET), f"manifest lacks {SNIPPET}"),
    (lambda e: e["manifest"].pop(TEST), f"manifest lacks {TEST}"),
    *(
        (lambda e, x=x: e["errors"]["float32"].update(error=x), "is not in 0 to")
        for x in (float("nan"), -1e-9, 5e-7, float("inf"))
    ),
    (lambda e: e["errors"]["float32"].update(bound=float("inf")), "0 to inf"),
]
# Changes of the whole record.
WHOLE = [
    (lambda d: d.update(format=3), "its format is 3, not 2"),
    (lambda d: d["runs"]["a run"].pop("date"), "/runs/a run/date is missing"),
    (lambda d: d["runs"]["a run"].update(date="9999-01-01"), "is in the future"),
    *(
        (lambda d, x=x: d["runs"]["a run"].update(date=x), f"date '{x}' is no day")
        for x in ("1 day", "2025-13-45", "20250101")
    ),
    (lambda d: d["runs"]["a run"].update(gpu=L4), "whose folder is another one"),
    (lambda d: d["runs"]["a run"].pop("gpu"), "whose folder is another one"),
    (lambda d: d["runs"]["a run"].pop("triton"), "/runs/a run/triton is missing"),
    (lambda d: d.update(snippets={"a.py": 1}), "/snippets/a.py is a int"),
]
WHOLE += [(lambda d, c=c: c(d["snippets"][NAME][KEY]), why) for c, why in ENTRIES]


@pytest.mark.parametrize(("change", "reason"), WHOLE)
def test_a_record_that_proves_nothing_is_refused(repository, path, change, reason):
    repository.change(path, change)
    with pytest.raises(RecordError, match=f"^{path}: .*{re.escape(reason)}"):
        records.load(path)


def test_what_is_merged_replaces_the_same_versions_only(repository, path, entry):
    root = repository.root
    facts = FACTS | {"gpu": H200}
    runs = {"b": facts | {"torch": "2"}, "c": facts, "d": facts}
    later = {NAME: replace(entry, run="b")}
    gone = {"softmax/gone.py": replace(entry, run="d")}
    records.merge(path, runs, later | gone, root)
    found = records.load(path)
    assert list(found.runs) == ["a run", "b"]
    assert [each.run for each in found.snippets[NAME].values()] == ["a run", "b"]
    records.merge(path, runs, {NAME: replace(entry, run="c")}, root)
    found = records.load(path)
    assert list(found.runs) == ["b", "c"]
    assert list(found.snippets) == [NAME]


def test_a_write_is_seen_whole_or_not_at_all(path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        records.save(records.Verification(path))
    assert path.read_bytes() == before


def test_whoever_merges_at_the_same_time_loses_nothing(repository, path):
    """Threads wait for each other at a lock of the file system as processes do."""

    def add(number: int) -> None:
        name = f"softmax/n{number}.py"
        repository.snippet(name, "")
        records.merge(path, {}, {name: repository.entry(name)}, repository.root)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert len(records.load(path).snippets) == 13


def test_what_is_new_above_a_test_or_had_no_hash_makes_its_entry_stale(
    repository, entry
):
    root = repository.root
    for file in ("conftest.py", "tests/__init__.py", "tests/snippets/conftest.py"):
        assert entry.changed(root, NAME) == []
        repository.write({file: ""})
        assert entry.changed(root, NAME) == [file]
        (root / file).unlink()
    nothing = replace(entry, manifest=entry.manifest | {"gone.py": ""})
    assert nothing.changed(root, NAME) == ["gone.py"]


# What demos printed on a GPU.

ERRORS = re.compile(r"largest errors?:? ((?:\d\.\d+e[+-]\d\d ?)+)")
FP8 = 0.1  # what eight bits may leave; the demos of 16 and 32 leave less


@pytest.mark.parametrize("path", layout.verification_files(ROOT), ids=str)
def test_no_demo_names_an_error_that_is_not_of_rounding(path):
    """A demo that compares with something else makes a right kernel look wrong."""
    seen = [
        (name, float(error))
        for name, entries in records.load(path).snippets.items()
        for entry in entries.values()
        if not layout.is_wrong(name) and not entry.changed(ROOT, name)
        for found in ERRORS.findall(entry.output)
        for error in found.split()
    ]
    assert len(seen) > 20
    assert [each for each in seen if each[1] > FP8] == []


# Benchmarks.


def test_records_are_told_apart(repository, path, timed):
    repository.write({layout.verdicts_file("Test GPU"): "{}"})
    evidence = repository.evidence()
    assert evidence.verification == {"nvidia-h200": records.load(path)}
    timed = {"softmax": records.load_benchmark(timed)}
    assert evidence.benchmarks == {"nvidia-h200": timed}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 1}, "its format is 1, not 2"),
        ({"environment": {"date": "9999-12-31", "gpu": H200}}, "is in the future"),
        ({"environment": FACTS | {"gpu": L4}}, "whose folder is another one"),
        ({"manifest": {}}, "/measurements has figures, but there are no hashes"),
        ({"backward": [1]}, "/backward/0 is a int"),
    ],
)
def test_a_benchmark_that_proves_nothing_is_refused(repository, timed, changes, reason):
    repository.change(timed, lambda data: data.update(changes))
    with pytest.raises(RecordError, match=reason):
        records.load_benchmark(timed)


def test_a_benchmark_of_no_part_is_refused(timed):
    other = timed.rename(timed.with_name("other.json"))
    with pytest.raises(RecordError, match="there is no part called other"):
        records.load_benchmark(other)
    with pytest.raises(RecordError, match="cannot be read"):
        records.load_benchmark(timed)
