"""Records: written whole, read with care, fresh only while the files are the same."""

import json
import multiprocessing
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verified_docs import layout
from verified_docs.evidence import records
from verified_docs.evidence.records import Entry, Error, RecordError, State

SNIPPET, TEST = "snippets/part/code.py", "tests/snippets/part/test_code.py"
FACTS = {"gpu": "NVIDIA H200", "torch": "2.11", "triton": "3.6", "date": "2026-11-21"}
KEY = "torch 2.11, triton 3.6"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (SNIPPET, TEST):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(f"# {name} — é\r\n".encode())
    return tmp_path


@pytest.fixture
def entry(root: Path) -> Entry:
    return Entry(
        run="a run",
        state="passed",
        failed=[],
        cases=30,
        skipped={"test_big": "needs a GPU"},
        errors={"float32": Error(1e-7, 2e-7, "test_a[é]")},
        no_accuracy="",
        output="cuda: größter Fehler 1e-7\n",
        manifest=records.hashes(root, [SNIPPET, TEST]),
    )


@pytest.fixture
def path(root: Path, entry: Entry) -> Path:
    path = root / layout.verification_file("NVIDIA H200")
    snippets = {"part/code.py": {KEY: entry}}
    records.save(records.Verification(path, {"a run": FACTS}, snippets))
    return path


def test_what_is_saved_is_loaded(path: Path, root: Path, entry: Entry) -> None:
    assert records.load(path).snippets == {"part/code.py": {KEY: entry}}
    assert records.load_all(root) == {"nvidia-h200": records.load(path)}
    before = path.read_bytes()
    records.save(records.load(path))
    assert path.read_bytes() == before
    assert before.endswith(b"}\n")
    assert [p.name for p in path.parent.iterdir()] == ["verification.json"]


def test_a_file_that_is_not_there_has_no_entries(root: Path) -> None:
    assert records.load(root / "none.json").snippets == {}
    assert records.load_all(root) == {}


@pytest.mark.parametrize("changed", [SNIPPET, TEST])
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n")),
        lambda path: path.write_bytes(path.read_bytes() + b"\n"),
        lambda path: path.unlink(),
    ],
    ids=["line end", "one more byte", "gone"],
)
def test_fresh_until_a_byte_changes(
    entry: Entry, root: Path, changed: str, change: Callable[[Path], None]
) -> None:
    assert entry.changed(root, "part/code.py") == []
    change(root / changed)
    assert entry.changed(root, "part/code.py") == [changed]


def test_what_an_entry_says(entry: Entry) -> None:
    assert entry.judge([]) is State.FRESH
    assert entry.judge([TEST]) is State.STALE
    failed = replace(entry, state="failed", failed=["test_a"])
    assert failed.judge([]) is State.FAILED
    assert failed.judge([TEST]) is State.STALE
    few, many = (dict.fromkeys(map(str, range(n)), "no fp8") for n in (3, 4))
    assert replace(entry, cases=27, skipped=few).judge([]) is State.FRESH
    assert replace(entry, cases=27, skipped=many).judge([]) is State.SKIPPED


def test_a_record_cut_short_at_any_byte_is_refused_by_name(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=r"verification\.json: not JSON, perhaps"):
            records.load(path)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e.pop("run"), f"/snippets/part/code.py/{KEY}/run is missing"),
        (lambda e: e.update(run="another"), "run is not in the file"),
        (lambda e: e.update(state="fine"), "state is 'fine'"),
        (lambda e: e.update(cases="3"), "cases is a str; it must be int"),
        (lambda e: e.update(cases=0), "passed, though cases failed or none ran"),
        (lambda e: e.update(failed=["a"]), "passed, though cases failed or none ran"),
        (lambda e: e.update(failed=[1]), "failed/0 is a int; it must be str"),
        (lambda e: e.update(skipped=["a"]), "skipped is a list; it must be dict"),
        (lambda e: e.update(skipped={"a": 1}), "skipped/a is a int; it must be str"),
        (lambda e: e["errors"].update(float16=1), "errors/float16 is a int"),
        (lambda e: e["errors"]["float32"].pop("bound"), "float32/bound is missing"),
        (lambda e: e.update(manifest={}), f"manifest lacks {SNIPPET}"),
        (lambda e: e["manifest"].pop(TEST), f"manifest lacks {TEST}"),
        (lambda e: e["manifest"].update(x="12"), "manifest/x is no SHA-256: '12'"),
        *(
            (lambda e, x=x: e["errors"]["float32"].update(error=x), "is not in 0 to")
            for x in (float("nan"), -1e-9, 3e-7, float("inf"))
        ),
        (lambda e: e["errors"]["float32"].update(bound=float("inf")), "0 to inf"),
    ],
)
def test_an_entry_that_proves_nothing_is_refused(
    path: Path, change: Change, reason: str
) -> None:
    data = json.loads(path.read_text("utf-8"))
    change(data["snippets"]["part/code.py"][KEY])
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(RecordError) as error:
        records.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(format=3), "its format is 3, not 2"),
        (lambda d: d.pop("format"), "/format is missing"),
        (lambda d: d.pop("runs"), "/runs is missing"),
        (lambda d: d["runs"]["a run"].pop("date"), "/runs/a run/date is missing"),
        (lambda d: d["runs"]["a run"].update(date="9999-01-01"), "is in the future"),
        (lambda d: d["runs"]["a run"].update(gpu="NVIDIA L4"), "whose folder is anoth"),
        (lambda d: d["runs"]["a run"].pop("gpu"), "whose folder is another one"),
        (lambda d: d.update(snippets={"a.py": 1}), "/snippets/a.py is a int"),
    ],
)
def test_a_record_of_nowhere_or_no_time_is_refused(
    path: Path, change: Change, reason: str
) -> None:
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(RecordError, match=reason):
        records.load(path)


@pytest.mark.parametrize(
    ("text", "reason"), [("[]", "is a list; it must be dict"), ("\xff", "not JSON")]
)
def test_another_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "verification.json"
    path.write_text(text, "latin-1")
    with pytest.raises(RecordError, match=reason):
        records.load(path)


def test_what_is_merged_replaces_the_same_versions_only(
    path: Path, root: Path, entry: Entry
) -> None:
    runs = {"b": FACTS | {"torch": "2.12"}, "c": FACTS, "d": FACTS}
    later = {"part/code.py": replace(entry, run="b")}
    records.merge(path, runs, later | {"part/gone.py": replace(entry, run="d")}, root)
    found = records.load(path)
    assert list(found.runs) == ["a run", "b"]
    assert [each.run for each in found.snippets["part/code.py"].values()] == [
        "a run",
        "b",
    ]
    records.merge(path, runs, {"part/code.py": replace(entry, run="c")}, root)
    found = records.load(path)
    assert list(found.runs) == ["b", "c"]
    assert list(found.snippets) == ["part/code.py"]


def test_a_write_that_fails_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(records.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        records.save(records.Verification(path))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["verification.json"]


def add(path: Path, entry: Entry, worker: int, root: Path) -> None:
    for number in range(10):
        name = f"part/{worker}_{number}.py"
        (root / layout.snippet_file(name)).touch()
        files = [layout.snippet_file(name), layout.test_file(name)]
        manifest = dict.fromkeys(files, "0" * 64)
        records.merge(path, {}, {name: replace(entry, manifest=manifest)}, root)


def test_processes_that_merge_lose_nothing(
    path: Path, entry: Entry, root: Path
) -> None:
    context = multiprocessing.get_context("fork")
    jobs = [(path, entry, number, root) for number in range(3)]
    workers = [context.Process(target=add, args=job) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(records.load(path).snippets) == 31


@pytest.mark.parametrize(
    ("gpu", "folder"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80gb"),
        ("AMD Instinct MI300X (gfx942)", "amd-instinct-mi300x-gfx942"),
    ],
)
def test_a_gpu_has_a_folder(gpu: str, folder: str) -> None:
    assert layout.slug(gpu) == folder


# Benchmarks.


@pytest.fixture
def benchmark_file(root: Path, path: Path) -> Path:
    data = {
        "format": 2,
        "environment": FACTS,
        "manifest": records.hashes(root, [SNIPPET]),
        "ceilings": {"copy": 4.25e12},
        "measurements": [{"seconds": 1.0}],
    }
    file = root / layout.benchmark_file("NVIDIA H200", "part")
    file.write_text(json.dumps(data))
    return file


def test_a_benchmark_is_stale_once_a_timed_file_changes(
    benchmark_file: Path, root: Path
) -> None:
    benchmark = records.load_benchmark(benchmark_file)
    assert benchmark.environment == FACTS
    assert benchmark.data["ceilings"]["copy"] == 4.25e12
    assert benchmark.stale(root) == []
    (root / SNIPPET).write_text("changed")
    assert benchmark.stale(root) == [SNIPPET]
    shutil.rmtree(root / "snippets")
    assert benchmark.stale(root) == [SNIPPET]


def test_records_are_told_apart(benchmark_file: Path, root: Path) -> None:
    (root / layout.VERDICTS).parent.mkdir()
    (root / layout.VERDICTS).write_text("{}")
    assert list(records.load_all(root)) == ["nvidia-h200"]
    found = records.load_benchmarks(root)
    assert {gpu: list(names) for gpu, names in found.items()} == {
        "nvidia-h200": ["part"]
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 1}, "its format is 1, not 2"),
        ({"environment": None}, "/environment is a NoneType"),
        ({"environment": FACTS | {"date": "9999-12-31"}}, "is in the future"),
        ({"environment": FACTS | {"gpu": "NVIDIA L4"}}, "whose folder is another one"),
        ({"manifest": []}, "/manifest is a list"),
        ({"manifest": {"a.py": "1"}}, "/manifest/a.py is no SHA-256"),
        ({"manifest": {}}, "/measurements has figures, but there are no hashes"),
        ({"measurements": {}}, "/measurements is a dict"),
        ({"backward": [1]}, "/backward/0 is a int"),
    ],
)
def test_a_benchmark_that_proves_nothing_is_refused(
    benchmark_file: Path, root: Path, changes: dict[str, Any], reason: str
) -> None:
    data = json.loads(benchmark_file.read_text())
    benchmark_file.write_text(json.dumps(data | changes))
    with pytest.raises(RecordError, match=reason):
        records.load_benchmarks(root)


def test_a_benchmark_of_no_part_is_refused(benchmark_file: Path, root: Path) -> None:
    benchmark_file.rename(benchmark_file.with_name("other.json"))
    with pytest.raises(RecordError, match="there is no part called other"):
        records.load_benchmarks(root)
    with pytest.raises(RecordError, match="cannot be read"):
        records.load_benchmark(benchmark_file)
