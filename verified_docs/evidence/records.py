"""Records: what was tried on which GPU, and whether that still holds.

`records/<gpu>/verification.json` is written by pytest, `records/<gpu>/<part>.json` by
the benchmarks. Both carry a manifest, the SHA-256 of everything they tried: a record is
fresh while those files are what they were.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from verified_docs import layout
from verified_docs.evidence import manifest

FORMAT = 2
LIMIT = 0.1  # the share of a snippet's cases that may be skipped on a GPU

Facts = dict[str, Any]  # where something ran: names and values, an open set
Manifest = dict[str, str]  # SHA-256 by path


class RecordError(ValueError):
    """A record that cannot be read; the message names the file and the reason."""


class State(StrEnum):
    """What a record says about a snippet as it is now."""

    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"
    SKIPPED = "skipped too much"


@dataclass(frozen=True)
class Error:
    """The largest error of a dtype, the bound it was held to, and the test case."""

    error: float
    bound: float
    case: str


@dataclass(frozen=True)
class Entry:
    """What one run showed of a snippet."""

    run: str  # its name in the same file
    state: str  # "passed" or "failed"
    failed: list[str]  # the cases that did not pass
    cases: int  # how many passed
    skipped: dict[str, str]  # why, for each case that did not run
    errors: dict[str, Error]  # the largest for each dtype
    no_accuracy: str  # why there is none, as the tests declare it
    output: str  # what the demo printed
    manifest: Manifest  # all files that the tests loaded

    def changed(self, root: Path, snippet: str) -> list[str]:
        """The files that are not what the run loaded, and those new around it."""
        around = layout.around(layout.test_file(snippet))
        new = [p for p in around if p not in self.manifest and (root / p).exists()]
        return changed(root, self.manifest) + new

    def judge(self, changed: list[str]) -> State:
        """What the entry says, if these files are not what they were."""
        if changed:
            return State.STALE
        if self.state != "passed":
            return State.FAILED
        most = LIMIT * (self.cases + len(self.skipped))
        return State.SKIPPED if len(self.skipped) > most else State.FRESH


@dataclass(frozen=True)
class Verification:
    """One verification.json: runs by name, entries by snippet and its versions."""

    path: Path
    runs: dict[str, Facts] = field(default_factory=dict)
    snippets: dict[str, dict[str, Entry]] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """One record of a benchmark; `data` is the whole, for figures and plots."""

    path: Path
    environment: Facts
    manifest: Manifest
    data: dict[str, Any]

    @property
    def gpu(self) -> str:
        """The GPU by its own name."""
        return str(self.environment.get("gpu", ""))


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes; "" where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def hashes(root: Path, paths: Iterable[str]) -> Manifest:
    """The manifest of files below the root, and of those that their imports lead to."""
    wanted = {*paths}
    wanted |= manifest.reached(root, wanted)
    return {path: sha256(root / path) for path in sorted(wanted)}


def changed(root: Path, manifest: Manifest) -> list[str]:
    """The paths of a manifest whose files are not what they were, or had no hash."""
    return [p for p, was in manifest.items() if not was or sha256(root / p) != was]


def versions(facts: Facts) -> str:
    """What an entry is kept under: a run with the same versions takes its place."""
    return ", ".join(f"{key} {facts[key]}" for key in ("torch", "triton"))


def load(path: Path) -> Verification:
    """Read a verification.json; a file that is not there has no entries.

    Raises RecordError for what pytest would not have written there.
    """
    if not path.exists():
        return Verification(path)
    data = read(path, RUNS)
    runs = data["runs"]
    for run, facts in runs.items():
        _demand(facts, RUN, path, f"/runs/{run}")
        _check_facts(facts, path, f"/runs/{run}")
    snippets: dict[str, dict[str, Entry]] = {}
    for name, entries in sorted(data["snippets"].items()):
        snippets[name] = {}
        for key, value in entries.items():
            where = f"/snippets/{name}/{key}"
            _refuse(value["run"] not in runs, path, f"{where}/run is not in the file")
            snippets[name][key] = _entry(name, value, path, where)
    return Verification(path, runs, snippets)


def merge(
    path: Path, runs: Mapping[str, Facts], entries: Mapping[str, Entry], root: Path
) -> None:
    """Put entries into a verification.json, which another process may do meanwhile.

    They replace those with the same versions. What is of no snippet any more goes, and
    so does a run without entries.
    """
    with alone(path.parent):
        record = load(path)
        record.runs.update(runs)
        for name, entry in entries.items():
            key = versions(record.runs[entry.run])
            record.snippets.setdefault(name, {})[key] = entry
        for name in record.snippets.keys() - layout.names(root):
            del record.snippets[name]
        used = {e.run for found in record.snippets.values() for e in found.values()}
        for run in record.runs.keys() - used:
            del record.runs[run]
        save(record)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let no other process write into a folder of records meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write(path: Path, text: str) -> None:
    """Write a record whole: a reader sees the old file or the new one.

    Two processes that may write the same file do so in turn, in `alone`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    temporary.replace(path)


def save(record: Verification) -> None:
    """Write a verification.json."""
    snippets = {
        name: {key: asdict(entry) for key, entry in sorted(entries.items())}
        for name, entries in sorted(record.snippets.items())
    }
    runs = dict(sorted(record.runs.items()))
    data = {"format": FORMAT, "runs": runs, "snippets": snippets}
    write(record.path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def load_benchmark(path: Path) -> Benchmark:
    """Read the record of a benchmark. Raises RecordError, also where there is none."""
    data = read(path, TIMES)
    _check_facts(data["environment"], path, "/environment")
    lost = _in_records(path) and path.stem not in layout.parts(path.parents[2])
    _refuse(lost, path, f"there is no part called {path.stem}")
    for key, value in data.items():
        if isinstance(value, list) or key == "measurements":
            _demand(value, list[dict[str, object]], path, f"/{key}")
            nothing = value and not data["manifest"]
            _refuse(nothing, path, f"/{key} has figures, but there are no hashes")
    return Benchmark(path, data["environment"], data["manifest"], data)


def replay(path: Path) -> dict[str, Any]:
    """Read the record of a snippet's replays. Raises RecordError."""
    return read(path, {"manifest": Manifest, "runs": list[dict[str, object]]}, 1)


# What is refused.

RUNS = {"runs": dict[str, dict[str, object]], "snippets": dict[str, dict[str, Entry]]}
TIMES = {"environment": dict[str, object], "manifest": Manifest}
RUN = dict.fromkeys(("torch", "triton", "commit"), str)


def read(path: Path, shape: dict[str, Any], form: int = FORMAT) -> dict[str, Any]:
    """The JSON of a record: of a format, with {key: type}. Raises RecordError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: not JSON, perhaps cut short: {error}") from error
    _demand(data, {"format": int}, path, "")
    wrong = data["format"] != form
    _refuse(wrong, path, f"its format is {data['format']}, not {form}")
    _demand(data, shape, path, "")
    return dict(data)


def _demand(value: Any, shape: Any, path: Path, where: str) -> None:
    """Refuse a value that is not what a type, a dataclass or {key: type} wants."""
    if is_dataclass(shape):
        shape = get_type_hints(shape)
    kind = dict if isinstance(shape, dict) else get_origin(shape) or shape
    if not isinstance(value, (int, float) if kind is float else kind):
        what = f"a {type(value).__name__}; it must be {kind.__name__}"
        raise RecordError(f"{path}: {where or '/'} is {what}")
    held: Any = value
    if isinstance(shape, dict):
        for key, its in shape.items():
            _refuse(key not in held, path, f"{where}/{key} is missing")
            _demand(held[key], its, path, f"{where}/{key}")
    elif inner := get_args(shape):
        for key, item in held.items() if kind is dict else enumerate(held):
            _demand(item, inner[-1], path, f"{where}/{key}")


def _refuse(wrong: object, path: Path, reason: str) -> None:
    if wrong:
        raise RecordError(f"{path}: {reason}")


def _in_records(path: Path) -> bool:
    return path.parent.parent.name == layout.RECORDS


def _check_facts(facts: Facts, path: Path, where: str) -> None:
    """An environment: of a day that has come and, in records/, of the folder's GPU."""
    _demand(facts, {"date": str}, path, where)
    day, wrong = facts["date"], True
    with suppress(ValueError):
        wrong = not day == str(date.fromisoformat(day)) <= str(datetime.now(UTC).date())
    _refuse(wrong, path, f"the date {day!r} is no day, or one that is in the future")
    gpu, folder = facts.get("gpu", ""), path.parent
    lost = _in_records(path) and layout.slug(gpu) != folder.name
    _refuse(lost, path, f"it is of the GPU {gpu!r}, whose folder is another one")


def _entry(name: str, data: dict[str, Any], path: Path, where: str) -> Entry:
    """An entry that agrees with itself."""
    state, passed = data["state"], data["cases"] > 0 and not data["failed"]
    reason = f"{where} passed, though cases failed or none ran"
    _refuse(state == "passed" and not passed, path, reason)
    silent = state == "passed" and not (data["errors"] or data["no_accuracy"])
    _refuse(silent, path, f"{where} has no error, and no reason why there is none")
    for file in (layout.snippet_file(name), layout.test_file(name)):
        lacks = file not in data["manifest"]
        _refuse(lacks, path, f"{where}/manifest lacks {file}")
    for dtype, found in data["errors"].items():
        error, bound = found["error"], found["bound"]
        reason = f"{where}/errors/{dtype} is {error}, which is not in 0 to {bound}"
        _refuse(not 0 <= error <= bound < float("inf"), path, reason)
    errors = {dtype: Error(**found) for dtype, found in data["errors"].items()}
    return Entry(**{**data, "errors": errors})
