"""Records: written whole, read with care, fresh only while the files are the same."""

import json
import multiprocessing
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from verified_docs.evidence import records
from verified_docs.evidence.records import Entry, Environment, Error, RecordError, State

ENVIRONMENT = Environment(
    gpu="NVIDIA H200",
    capability="9.0",
    driver="580.1",
    cuda="13.0",
    torch="2.11.0",
    triton="3.6.0",
    python="3.12.3",
    date="2026-11-21",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("snippets/part/code.py", "tests/snippets/part/test_code.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(f"# {name} — é\r\n".encode())
    return tmp_path


@pytest.fixture
def entry(root: Path) -> Entry:
    test = "tests/snippets/part/test_code.py"
    return Entry(
        sha256=records.file_hash(root / "snippets/part/code.py"),
        test=test,
        test_sha256=records.file_hash(root / test),
        cases=3,
        skipped=["test_big: needs a GPU"],
        errors={"float32": Error(1e-7, 2e-7, "test_a[é]")},
        output="cuda: größter Fehler 1e-7\n",
        environment=ENVIRONMENT,
    )


@pytest.fixture
def path(root: Path, entry: Entry) -> Path:
    path = root / "records/nvidia-h200/verification.json"
    records.save(records.Verification(path, {"part/code.py": entry}))
    return path


def test_what_is_saved_is_loaded(path: Path, entry: Entry) -> None:
    assert records.load(path).snippets == {"part/code.py": entry}
    assert records.load_all(path.parents[1]) == {"nvidia-h200": records.load(path)}
    before = path.read_bytes()
    records.save(records.load(path))
    assert path.read_bytes() == before
    assert before.endswith(b"}\n")
    assert [p.name for p in path.parent.iterdir()] == ["verification.json"]


def test_a_file_that_is_not_there_has_no_entries(root: Path) -> None:
    assert records.load(root / "none.json").snippets == {}
    assert records.load_all(root / "records") == {}


def test_two_gpus_are_two_records(path: Path, root: Path, entry: Entry) -> None:
    other = replace(entry, environment=replace(ENVIRONMENT, gpu="NVIDIA L4"), cases=1)
    with records.editing(root / "records/nvidia-l4/verification.json") as record:
        record.snippets["part/code.py"] = other
    found = records.load_all(root / "records")
    assert found["nvidia-l4"].snippets["part/code.py"] == other
    assert found["nvidia-h200"].snippets["part/code.py"] == entry


@pytest.mark.parametrize(
    "changed", ["snippets/part/code.py", "tests/snippets/part/test_code.py"]
)
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
    path: Path, root: Path, changed: str, change
) -> None:
    record = records.load(path)
    assert record.state(root, "part/code.py") is State.FRESH
    change(root / changed)
    assert record.state(root, "part/code.py") is State.STALE
    assert record.state(root, "part/other.py") is State.MISSING


def test_what_a_test_module_shares_with_others_is_part_of_it(root: Path) -> None:
    test = "tests/snippets/part/test_code.py"
    for name, text in {
        test: "import os\nfrom tests.snippets.part.cases import A\n",
        "tests/snippets/part/cases.py": "import tests.snippets.part.more\n",
        "tests/snippets/part/more.py": "from tests.snippets.part.cases import A\n",
    }.items():
        (root / name).write_text(text)
    before = records.test_hash(root, test)
    assert before != records.file_hash(root / test)
    for name in ("cases", "more"):
        path = root / f"tests/snippets/part/{name}.py"
        text = path.read_text()
        path.write_text(text + "\n")
        assert records.test_hash(root, test) != before
        path.write_text(text)
    assert records.test_hash(root, test) == before
    (root / test).write_text("import os\n")
    assert records.test_hash(root, test) == records.file_hash(root / test)


def test_a_record_cut_short_at_any_byte_is_refused_by_name(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=r"verification\.json: not JSON, perhaps"):
            records.load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e.pop("sha256"), "/snippets/part/code.py/sha256 is missing"),
        (lambda e: e.update(sha256="12"), "sha256 is not a SHA-256: '12'"),
        (
            lambda e: next(iter(e["errors"].values())).update(error=float("nan")),
            "is not finite: nan",
        ),
        (lambda e: e.update(test_sha256=None), "test_sha256 is a NoneType"),
        (lambda e: e.update(cases="3"), "cases is a str; it must be int"),
        (lambda e: e.update(cases=True), "cases is a bool; it must be int"),
        (lambda e: e.update(skipped=[1]), "skipped holds something other than text"),
        (lambda e: e.update(errors=[]), "errors is a list; it must be dict"),
        (lambda e: e["errors"].update(float16=1), "errors/float16 is a int"),
        (lambda e: e["errors"]["float32"].pop("bound"), "float32/bound is missing"),
        (lambda e: e.update(output=None), "output is a NoneType"),
        (lambda e: e.pop("environment"), "/environment is missing"),
        (lambda e: e["environment"].pop("driver"), "environment/driver is missing"),
        (lambda e: e["environment"].update(gpu=1), "environment/gpu is a int"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(path: Path, change, reason) -> None:
    data = json.loads(path.read_text("utf-8"))
    change(data["snippets"]["part/code.py"])
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(RecordError) as error:
        records.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "holds a list, not an object"),
        ("{}", "/snippets is missing"),
        ('{"snippets": {"a.py": 1}}', "/snippets/a.py is a int, not an object"),
        ("\xff", "not JSON"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "verification.json"
    path.write_text(text, "latin-1")
    with pytest.raises(RecordError, match=reason):
        records.load(path)


def test_nothing_is_written_if_the_edit_fails(path: Path) -> None:
    def fail() -> None:
        with records.editing(path) as record:
            record.snippets.clear()
            raise KeyboardInterrupt

    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == before


def test_a_write_that_fails_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(records.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        records.save(records.Verification(path, {}))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["verification.json"]


def add(path: Path, entry: Entry, worker: int) -> None:
    for number in range(10):
        with records.editing(path) as record:
            record.snippets[f"part/{worker}_{number}.py"] = entry


def test_two_processes_that_edit_lose_nothing(path: Path, entry: Entry) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=add, args=(path, entry, n)) for n in range(3)]
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
    assert records.slug(gpu) == folder


# Benchmarks.


@pytest.fixture
def benchmark_file(root: Path, path: Path) -> Path:
    snippet = "snippets/part/code.py"
    data = {
        "environment": ENVIRONMENT.__dict__,
        "files": {snippet: records.file_hash(root / snippet)},
        "ceilings": {"copy": 4.25e12},
        "measurements": [],
    }
    file = path.with_name("softmax.json")
    file.write_text(json.dumps(data))
    return file


def test_a_benchmark_is_stale_once_a_timed_file_changes(
    benchmark_file: Path, root: Path
) -> None:
    benchmark = records.load_benchmark(benchmark_file)
    assert benchmark.environment == ENVIRONMENT
    assert benchmark.data["ceilings"]["copy"] == 4.25e12
    assert benchmark.stale(root) == []
    (root / "snippets/part/code.py").write_text("changed")
    assert benchmark.stale(root) == ["snippets/part/code.py"]
    shutil.rmtree(root / "snippets")
    assert benchmark.stale(root) == ["snippets/part/code.py"]


def test_benchmarks_and_verification_are_told_apart(benchmark_file: Path) -> None:
    folder = benchmark_file.parents[1]
    assert list(records.load_all(folder)) == ["nvidia-h200"]
    found = records.load_benchmarks(folder)
    assert {gpu: list(names) for gpu, names in found.items()} == {
        "nvidia-h200": ["softmax"]
    }


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("environment", None, "/environment is a NoneType"),
        ("files", [], "/files is a list"),
        ("files", {"a.py": 1}, "files/a.py is a int"),
    ],
)
def test_a_benchmark_of_a_wrong_shape_is_refused(
    benchmark_file: Path, key: str, value: object, reason: str
) -> None:
    data = json.loads(benchmark_file.read_text())
    benchmark_file.write_text(json.dumps({**data, key: value}))
    with pytest.raises(RecordError, match=reason):
        records.load_benchmark(benchmark_file)
    benchmark_file.unlink()
    with pytest.raises(RecordError, match="cannot be read"):
        records.load_benchmark(benchmark_file)
