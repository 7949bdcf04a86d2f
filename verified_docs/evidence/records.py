"""Records: what was tried on which GPU, and whether that still holds.

`records/<gpu>/verification.json` is written by pytest, `records/<gpu>/<name>.json` by
the benchmarks. Both carry the SHA-256 of what they tried: a record is fresh while the
files are the same.
"""

import fcntl
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

VERIFICATION = "verification.json"
INTERPRETER = Path(".cache/interpreter.json")


class RecordError(ValueError):
    """A record that cannot be read; the message names the file and the reason."""


class State(StrEnum):
    """What a record says about a snippet as it is now."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"


@dataclass(frozen=True)
class Environment:
    """Where something ran. Empty where it does not apply, as under the interpreter."""

    gpu: str
    capability: str
    driver: str
    cuda: str
    torch: str
    triton: str
    python: str
    date: str


@dataclass(frozen=True)
class Error:
    """The largest error of a dtype, the bound it was held to, and the test case."""

    error: float
    bound: float
    case: str


@dataclass(frozen=True)
class Entry:
    """A snippet whose tests all passed.

    Attributes:
        sha256: of the snippet file.
        test: path of the test module, relative to the root.
        test_sha256: of the test module, see `test_hash`.
        cases: how many test cases passed.
        skipped: `case: reason` for each one that did not run.
        errors: the largest error for each dtype.
        output: what the demo printed.
        environment: where it ran.
    """

    sha256: str
    test: str
    test_sha256: str
    cases: int
    skipped: list[str]
    errors: dict[str, Error]
    output: str
    environment: Environment

    def state(self, root: Path, snippet: str) -> State:
        """FRESH while the snippet and its tests are what they were, else STALE."""
        path, test = root / "snippets" / snippet, root / self.test
        same = (
            path.is_file()
            and test.is_file()
            and file_hash(path) == self.sha256
            and test_hash(root, self.test) == self.test_sha256
        )
        return State.FRESH if same else State.STALE


@dataclass(frozen=True)
class Verification:
    """One verification.json: the entries by snippet, such as `softmax/online.py`."""

    path: Path
    snippets: dict[str, Entry] = field(default_factory=dict)

    def state(self, root: Path, snippet: str) -> State:
        """Whether a snippet is recorded here, and still the same."""
        entry = self.snippets.get(snippet)
        return State.MISSING if entry is None else entry.state(root, snippet)


@dataclass(frozen=True)
class Benchmark:
    """One record of a benchmark.

    Attributes:
        path: the file.
        environment: where it ran.
        files: SHA-256 of each timed file, by its path relative to the root.
        data: the whole record, for figures and plots.
    """

    path: Path
    environment: Environment
    files: dict[str, str]
    data: dict[str, Any]

    def stale(self, root: Path) -> list[str]:
        """The timed files that have changed or gone since."""
        return [
            name
            for name, sha256 in self.files.items()
            if not (root / name).is_file() or file_hash(root / name) != sha256
        ]


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_hash(root: Path, test: str) -> str:
    """SHA-256 of a test module and of the modules below tests/snippets it imports.

    Without such imports it is the hash of the file.
    """
    files, found = [root / test], set()
    digest = hashlib.sha256()
    while files:
        path = files.pop(0)
        if path not in found and path.is_file():
            found.add(path)
            digest.update(path.read_bytes())
            files += [root / name for name in _shared(path)]
    return digest.hexdigest()


def _shared(path: Path) -> list[str]:
    """The files below tests/snippets that a module imports, sorted."""
    imported = re.findall(
        r"^\s*(?:from|import)\s+(tests\.snippets\.[\w.]+)",
        path.read_text(encoding="utf-8", errors="replace"),
        re.MULTILINE,
    )
    return sorted({f"{name.replace('.', '/')}.py" for name in imported})


def slug(gpu: str) -> str:
    """The folder of a GPU: `NVIDIA H200` -> `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")


def load(path: Path) -> Verification:
    """Read a verification.json; a file that is not there has no entries.

    Raises:
        RecordError: it is not JSON, or not of the shape that pytest writes.
    """
    if not path.exists():
        return Verification(path)
    snippets = _get(_read(path), "snippets", dict, path, "")
    return Verification(
        path,
        {name: _entry(value, path, name) for name, value in sorted(snippets.items())},
    )


def save(record: Verification) -> None:
    """Write a verification.json whole: a reader sees the old file or the new one."""
    snippets = {name: asdict(entry) for name, entry in sorted(record.snippets.items())}
    text = json.dumps({"snippets": snippets}, indent=2, ensure_ascii=False) + "\n"
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


@contextmanager
def editing(path: Path) -> Iterator[Verification]:
    """Read a verification.json, let the body change `snippets`, and save it.

    Another process that edits the same file waits. If the body raises, nothing is
    written; if it changes nothing, the file keeps its bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        record = load(path)
        before = dict(record.snippets)
        yield record
        if record.snippets != before:
            save(record)
    finally:
        os.close(folder)


def load_all(folder: Path) -> dict[str, Verification]:
    """The verification of every GPU under `records/`, by the name of its folder.

    Raises:
        RecordError: one of them cannot be read.
    """
    return {path.parent.name: load(path) for path in folder.glob(f"*/{VERIFICATION}")}


def load_benchmark(path: Path) -> Benchmark:
    """Read the record of a benchmark.

    Raises:
        RecordError: it is missing, not JSON, or has no environment or files.
    """
    data = _read(path)
    files = _get(data, "files", dict, path, "")
    for name in files:
        _get(files, name, str, path, "files")
    if "measurements" in data:
        _get(data, "measurements", list, path, "")
    for key, value in data.items():
        for number, item in enumerate(value if isinstance(value, list) else ()):
            if not isinstance(item, dict):
                reason = f"is a {type(item).__name__}, not an object"
                raise RecordError(f"{path}: /{key}/{number} {reason}")
    return Benchmark(path, _environment(data, path, ""), files, data)


def load_benchmarks(folder: Path) -> dict[str, dict[str, Benchmark]]:
    """Every benchmark's record under `records/`: by GPU folder, then by name.

    Raises:
        RecordError: one of them cannot be read.
    """
    found: dict[str, dict[str, Benchmark]] = {}
    for path in sorted(folder.glob("*/*.json")):
        if path.name != VERIFICATION:
            found.setdefault(path.parent.name, {})[path.stem] = load_benchmark(path)
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: not JSON, perhaps cut short: {error}") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path}: holds a {type(data).__name__}, not an object")
    return data


def _get(data: dict[str, Any], key: str, kind: Any, path: Path, where: str) -> Any:
    """A value of a JSON object that must be there and of the right type."""
    name = f"{where}/{key}"
    if key not in data:
        raise RecordError(f"{path}: {name} is missing")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = getattr(kind, "__name__", str(kind))
        raise RecordError(
            f"{path}: {name} is a {type(value).__name__}; it must be {wanted}"
        )
    return value


def _entry(value: Any, path: Path, name: str) -> Entry:
    where = f"/snippets/{name}"
    if not isinstance(value, dict):
        raise RecordError(f"{path}: {where} is a {type(value).__name__}, not an object")
    for key in ("sha256", "test_sha256"):
        if not re.fullmatch(r"[0-9a-f]{64}", _get(value, key, str, path, where)):
            raise RecordError(f"{path}: {where}/{key} is not a SHA-256: {value[key]!r}")
    skipped = _get(value, "skipped", list, path, where)
    if not all(isinstance(reason, str) for reason in skipped):
        raise RecordError(f"{path}: {where}/skipped holds something other than text")
    errors = _get(value, "errors", dict, path, where)
    return Entry(
        sha256=value["sha256"],
        test=_get(value, "test", str, path, where),
        test_sha256=value["test_sha256"],
        cases=_get(value, "cases", int, path, where),
        skipped=skipped,
        errors={
            dtype: _error(
                _get(errors, dtype, dict, path, f"{where}/errors"),
                path,
                f"{where}/errors/{dtype}",
            )
            for dtype in sorted(errors)
        },
        output=_get(value, "output", str, path, where),
        environment=_environment(value, path, where),
    )


def _error(value: dict[str, Any], path: Path, where: str) -> Error:
    error, bound = (
        float(_get(value, key, int | float, path, where)) for key in ("error", "bound")
    )
    if not math.isfinite(error) or not math.isfinite(bound):
        raise RecordError(f"{path}: {where} is not finite: {error}, bound {bound}")
    return Error(error=error, bound=bound, case=_get(value, "case", str, path, where))


def _environment(value: dict[str, Any], path: Path, where: str) -> Environment:
    data = _get(value, "environment", dict, path, where)
    where = f"{where}/environment"
    return Environment(
        **{f.name: _get(data, f.name, str, path, where) for f in fields(Environment)}
    )
