"""Records: what was tried on which GPU, and whether that still holds.

`records/<gpu>/verification.json` is written by pytest, `records/<gpu>/<part>.json` by
the benchmarks. Both carry a manifest, the SHA-256 of everything they tried: a record is
fresh while those files are what they were.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from verified_docs import layout

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
    MISSING = "not run"


@dataclass(frozen=True)
class Error:
    """The largest error of a dtype, the bound it was held to, and the test case."""

    error: float
    bound: float
    case: str


@dataclass(frozen=True)
class Entry:
    """What one run showed of a snippet.

    Attributes:
        run: the run's name in the same file.
        state: "passed", or "failed".
        failed: the cases that did not pass.
        cases: how many passed.
        skipped: why, for each case that did not run.
        errors: the largest error for each dtype.
        no_accuracy: why there is none, as the tests declare it.
        output: what the demo printed.
        manifest: all files that the tests loaded.
    """

    run: str
    state: str
    failed: list[str]
    cases: int
    skipped: dict[str, str]
    errors: dict[str, Error]
    no_accuracy: str
    output: str
    manifest: Manifest

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
    """One verification.json.

    Attributes:
        path: the file.
        runs: where and when each run was, by its name.
        snippets: by the snippet, then by the versions it ran with.
    """

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

    def stale(self, root: Path) -> list[str]:
        """The files that changed since they were timed."""
        return changed(root, self.manifest)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes; "" where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def hashes(root: Path, paths: Iterable[str]) -> Manifest:
    """The manifest of files below the root."""
    return {path: sha256(root / path) for path in sorted(paths)}


def changed(root: Path, manifest: Manifest) -> list[str]:
    """The paths of a manifest whose files are not what they were."""
    return [path for path, was in manifest.items() if sha256(root / path) != was]


def versions(facts: Facts) -> str:
    """What an entry is kept under: a run with the same versions takes its place."""
    named = (f"{key} {facts[key]}" for key in ("torch", "triton") if key in facts)
    return ", ".join(named)


def load(path: Path) -> Verification:
    """Read a verification.json; a file that is not there has no entries.

    Raises RecordError for what pytest would not have written there.
    """
    if not path.exists():
        return Verification(path)
    data = _read(path)
    runs = _get(data, "runs", dict, path, "")
    for run, facts in runs.items():
        _facts(facts, path, f"/runs/{run}")
    snippets: dict[str, dict[str, Entry]] = {}
    for name, entries in sorted(_get(data, "snippets", dict, path, "").items()):
        where = f"/snippets/{name}"
        snippets[name] = {
            key: _entry(name, value, runs, path, f"{where}/{key}")
            for key, value in _is(entries, dict, path, where).items()
        }
    return Verification(path, runs, snippets)


def merge(
    path: Path, runs: Mapping[str, Facts], entries: Mapping[str, Entry], root: Path
) -> None:
    """Put entries into a verification.json, which another process may do meanwhile.

    They replace those with the same versions. What is of no snippet any more goes, and
    so does a run without entries.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        record = load(path)
        record.runs.update(runs)
        for name, entry in entries.items():
            key = versions(record.runs[entry.run])
            record.snippets.setdefault(name, {})[key] = entry
        for name in record.snippets.keys() - layout.names(root):
            del record.snippets[name]
        used = {
            each.run for found in record.snippets.values() for each in found.values()
        }
        for run in record.runs.keys() - used:
            del record.runs[run]
        save(record)
    finally:
        os.close(folder)


def save(record: Verification) -> None:
    """Write a verification.json whole: a reader sees the old file or the new one."""
    snippets = {
        name: {key: asdict(entry) for key, entry in sorted(entries.items())}
        for name, entries in sorted(record.snippets.items())
    }
    runs = dict(sorted(record.runs.items()))
    data = {"format": FORMAT, "runs": runs, "snippets": snippets}
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    record.path.parent.mkdir(parents=True, exist_ok=True)
    temporary = record.path.with_name(f".{record.path.name}.new")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, record.path)
    finally:
        temporary.unlink(missing_ok=True)


def load_all(root: Path) -> dict[str, Verification]:
    """The verification on every GPU, by the name of its folder. Raises RecordError."""
    found = {}
    for path in sorted((root / layout.RECORDS).glob(f"*/{layout.VERIFICATION}")):
        found[path.parent.name] = record = load(path)
        for facts in record.runs.values():
            _at_home(facts, path)
    return found


def load_benchmark(path: Path) -> Benchmark:
    """Read the record of a benchmark. Raises RecordError, also where there is none."""
    data = _read(path)
    environment = _facts(
        _get(data, "environment", dict, path, ""), path, "/environment"
    )
    manifest = _manifest(data, path, "")
    if "measurements" in data:
        _get(data, "measurements", list, path, "")
    for key, value in data.items():
        if not isinstance(value, list):
            continue
        if value and not manifest:
            raise RecordError(f"{path}: /{key} has figures, but there are no hashes")
        for number, item in enumerate(value):
            _is(item, dict, path, f"/{key}/{number}")
    return Benchmark(path, environment, manifest, data)


def load_benchmarks(root: Path) -> dict[str, dict[str, Benchmark]]:
    """What was timed: by the folder of the GPU, then by part. Raises RecordError."""
    found: dict[str, dict[str, Benchmark]] = {}
    for path in sorted((root / layout.RECORDS).glob("*/*.json")):
        if path.name == layout.VERIFICATION:
            continue
        if path.stem not in (parts := layout.parts(root)):
            raise RecordError(f"{path}: there is no part {path.stem}: {parts}")
        benchmark = load_benchmark(path)
        _at_home(benchmark.environment, path)
        found.setdefault(path.parent.name, {})[path.stem] = benchmark
    return found


# What is refused.


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: not JSON, perhaps cut short: {error}") from error
    found: dict[str, Any] = _is(data, dict, path, "/")
    if found.get("format") != FORMAT:
        known = f"this tree reads {FORMAT}"
        raise RecordError(f"{path}: its format is {found.get('format')}; {known}")
    return found


def _is(value: Any, kind: Any, path: Path, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = getattr(kind, "__name__", str(kind))
        found = type(value).__name__
        raise RecordError(f"{path}: {where} is a {found}; it must be {wanted}")
    return value


def _get(data: dict[str, Any], key: str, kind: Any, path: Path, where: str) -> Any:
    if key not in data:
        raise RecordError(f"{path}: {where}/{key} is missing")
    return _is(data[key], kind, path, f"{where}/{key}")


def _facts(value: Any, path: Path, where: str) -> Facts:
    """An environment, of a day that has come."""
    facts: Facts = _is(value, dict, path, where)
    date = _get(facts, "date", str, path, where)
    if date[:10] > datetime.now(UTC).strftime("%Y-%m-%d"):
        raise RecordError(f"{path}: {where}/date is in the future: {date}")
    return facts


def _at_home(facts: Facts, path: Path) -> None:
    """The folder of a record is that of its GPU."""
    gpu = _get(facts, "gpu", str, path, "/environment")
    if layout.slug(gpu) != path.parent.name:
        raise RecordError(f"{path}: it is of {gpu}, whose folder is another one")


def _manifest(data: dict[str, Any], path: Path, where: str) -> Manifest:
    manifest: Manifest = _get(data, "manifest", dict, path, where)
    for name, value in manifest.items():
        if not re.fullmatch(r"[0-9a-f]{64}", _is(value, str, path, f"{where}/{name}")):
            raise RecordError(f"{path}: {where}/manifest/{name} is no SHA-256: {value}")
    return manifest


def _texts(value: Iterable[Any], path: Path, where: str) -> None:
    for text in value:
        _is(text, str, path, f"an item of {where}")


def _entry(
    name: str, value: Any, runs: Mapping[str, Facts], path: Path, where: str
) -> Entry:
    data: dict[str, Any] = _is(value, dict, path, where)
    kinds = {"failed": list, "cases": int, "skipped": dict, "errors": dict}
    for key, kind in kinds.items():
        _get(data, key, kind, path, where)
    for key in ("run", "state", "no_accuracy", "output"):
        _get(data, key, str, path, where)
    if data["run"] not in runs:
        raise RecordError(f"{path}: {where} is of a run that is not in the file")
    if data["state"] not in ("passed", "failed"):
        raise RecordError(f"{path}: {where}/state is {data['state']!r}")
    if (data["state"] == "passed") != (data["cases"] > 0 and not data["failed"]):
        raise RecordError(f"{path}: {where} passed, though cases failed or none ran")
    _texts(data["failed"], path, f"{where}/failed")
    _texts(data["skipped"].values(), path, f"{where}/skipped")
    manifest = _manifest(data, path, where)
    for needed in (layout.snippet_file(name), layout.test_file(name)):
        if needed not in manifest:
            raise RecordError(f"{path}: {where}/manifest lacks {needed}")
    errors = {
        dtype: _error(error, path, f"{where}/errors/{dtype}")
        for dtype, error in sorted(data["errors"].items())
    }
    try:
        return Entry(**{**data, "errors": errors})
    except TypeError as error:
        raise RecordError(f"{path}: {where}: {error}") from None


def _error(value: Any, path: Path, where: str) -> Error:
    data = _is(value, dict, path, where)
    error, bound = (
        float(_get(data, key, int | float, path, where)) for key in ("error", "bound")
    )
    if not 0 <= error <= bound < float("inf"):
        raise RecordError(f"{path}: {where} is {error}, which is not in 0 to {bound}")
    return Error(error, bound, _get(data, "case", str, path, where))
