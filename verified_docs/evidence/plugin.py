"""The pytest plugin that writes down what the tests of the snippets showed.

`tests/snippets/<part>/test_<name>.py` mirrors `snippets/<part>/<name>.py`. The plugin
adds one test to each such module: `demo` runs the snippet as a reader would, and keeps
what it prints. A snippet whose module ran whole and passed is recorded, at once:

- with `--record [DIR]`, on a GPU, in DIR/verification.json;
- under Triton's interpreter, always, in .cache/interpreter.json.

A snippet whose module failed, or was started and not finished, loses its entry, and so
does one whose file changed meanwhile. The entries of snippets that were not run stay.
"""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest

from verified_docs.evidence import records

DEMO_SECONDS = 300
LEFT_OUT = ("demo", "leaves_tensors")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare --record and --thin."""
    group = parser.getgroup("verified_docs")
    group.addoption(
        "--record",
        nargs="?",
        const="",
        default=None,
        metavar="DIR",
        help="record what passes on this GPU; DIR defaults to records/<gpu>",
    )
    group.addoption(
        "--thin",
        nargs="?",
        type=int,
        const=4,
        default=0,
        metavar="CASES",
        help="run at most CASES (4) of each parametrised test, one of those marked "
        "large, none marked demo or leaves_tensors: for compute-sanitizer; records "
        "nothing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and start the recorder in the one process that writes."""
    for marker in (
        "gpu: needs a GPU; skipped where there is none",
        "large: takes tens of GB of a GPU, so that such tests go one at a time",
        "leaves_tensors: the kernel leaves its tensors, and must be caught at it",
        "demo: runs the snippet as a reader would",
    ):
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(Collector(config.rootpath), "snippet_collector")
    if hasattr(config, "workerinput"):
        return
    path = _record_path(config)
    if path is not None:
        config.pluginmanager.register(
            Recorder(config.rootpath, path), "snippet_recorder"
        )


def _record_path(config: pytest.Config) -> Path | None:
    """Where to record, if at all."""
    wanted: str | None = config.getoption("record")
    if config.getoption("thin"):
        if wanted is not None:
            raise pytest.UsageError(
                "--record and --thin exclude each other: a thinned run shows too little"
            )
        return None
    gpu = gpu_name()
    if wanted is None:
        return None if gpu else config.rootpath / records.INTERPRETER
    if not gpu:
        raise pytest.UsageError(
            "--record (make gpu) needs a GPU, and torch sees none here, or "
            "TRITON_INTERPRET is set. Without a GPU, make test runs the same tests "
            "under Triton's interpreter."
        )
    folder = config.rootpath / (wanted or f"records/{records.slug(gpu)}")
    if folder.suffix == ".py" or (config.rootpath / "tests") in [
        folder,
        *folder.parents,
    ]:
        raise pytest.UsageError(
            f"--record would write into {wanted}, which holds tests: "
            "name the tests first, or write --record=DIR"
        )
    return folder / records.VERIFICATION


def gpu_name() -> str | None:
    """The GPU that kernels run on; None under the interpreter."""
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def environment() -> records.Environment:
    """Where the tests run, now."""
    gpu, capability, driver, cuda = gpu_name(), "", "", ""
    if gpu:
        import torch

        capability = ".".join(map(str, torch.cuda.get_device_capability()))
        cuda = str(torch.version.cuda)
        driver = _driver()
    return records.Environment(
        gpu=gpu or "",
        capability=capability,
        driver=driver,
        cuda=cuda,
        torch=_version("torch"),
        triton=_version("triton"),
        python=platform.python_version(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return answer.stdout.splitlines()[0].strip()


# What a running test measures.

_item: pytest.Item | None = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test runs, for what it measures."""
    global _item
    _item = item


def record_accuracy(dtype: str, error: float, bound: float) -> None:
    """Keep an error that the running test measured, and the bound it was held to.

    Of each dtype, the largest error of a test is kept.
    """
    if _item is None:
        return
    for index, (name, value) in enumerate(_item.user_properties):
        if name == "accuracy" and isinstance(value, tuple) and value[0] == dtype:
            if error > value[1]:
                _item.user_properties[index] = (name, (dtype, error, bound))
            return
    _item.user_properties.append(("accuracy", (dtype, error, bound)))


# What is collected: the mirrored modules, each with its demo.


def snippet_of(test: str) -> str | None:
    """The snippet that a test module mirrors.

    `tests/snippets/softmax/test_online.py` -> `softmax/online.py`; None for any other
    file.
    """
    path = Path(test)
    if path.parts[:2] != ("tests", "snippets") or not path.name.startswith("test_"):
        return None
    mirrored = path.relative_to("tests/snippets")
    return mirrored.with_name(mirrored.name.removeprefix("test_")).as_posix()


class Demo(pytest.Item):
    """Runs one snippet on its own, as `python snippets/<part>/<name>.py` would."""

    def __init__(self, snippet: Path, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.snippet = snippet
        self.add_marker("demo")

    def runtest(self) -> None:
        """Keep what the snippet prints; fail if it fails or prints nothing."""
        run = subprocess.run(
            [sys.executable, str(self.snippet)],
            cwd=self.config.rootpath,
            capture_output=True,
            encoding="utf-8",
            timeout=DEMO_SECONDS,
        )
        if run.returncode:
            raise DemoFailed(f"exit status {run.returncode}\n{run.stderr}")
        if not run.stdout.strip():
            raise DemoFailed("it prints nothing")
        self.user_properties.append(("output", run.stdout))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        """The snippet's own words."""
        return f"python {self.snippet}: {excinfo.value}"

    def reportinfo(self) -> tuple[Path, int, str]:
        """The snippet, from its first line."""
        return self.config.rootpath / self.snippet, 0, f"python {self.snippet}"


class DemoFailed(Exception):
    """A snippet that does not run on its own."""


class MirroredModule(pytest.Module):
    """A test module that mirrors a snippet."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Its own tests, then the demo."""
        yield from super().collect()
        snippet = snippet_of(self.nodeid)
        assert snippet is not None
        yield Demo.from_parent(self, name="demo", snippet=Path("snippets", snippet))


class Collector:
    """Sees to it that each mirrored module has a demo, and counts what it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.children: dict[str, list[tuple[str, bool]]] = {}

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """A MirroredModule where there is a snippet to mirror."""
        if not module_path.is_relative_to(self.root):
            return None
        snippet = snippet_of(module_path.relative_to(self.root).as_posix())
        if snippet is None or not (self.root / "snippets" / snippet).is_file():
            return None
        return MirroredModule.from_parent(parent, path=module_path)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Keep what a module or class holds, before --last-failed thins it."""
        report = yield
        self.children[collector.nodeid] = [
            (node.nodeid, isinstance(node, pytest.Item)) for node in report.result or []
        ]
        return report

    def size(self, nodeid: str) -> int:
        """How many tests a module or class holds; -1 if it was not looked through."""
        if nodeid not in self.children:
            return -1
        sizes = [
            1 if is_item else self.size(child)
            for child, is_item in self.children[nodeid]
        ]
        return -1 if -1 in sizes else sum(sizes)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Thin out, if asked to."""
        most: int = config.getoption("thin")
        if not most:
            return
        kept = thinned(items, most)
        config.hook.pytest_deselected(items=[i for i in items if i not in kept])
        items[:] = sorted((item for item in items if item in kept), key=_is_large)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the size of the module along: under xdist only workers know it."""
        report = yield
        size = self.size(item.nodeid.split("::")[0])
        report.module_size = size  # type: ignore[attr-defined]
        return report


def thinned(items: list[pytest.Item], most: int) -> set[pytest.Item]:
    """At most `most` cases of each test, none of those that --thin leaves out.

    Of all that are marked `large`, one of each module: compute-sanitizer keeps the
    memory of a test until its process ends. The choice looks random, so that it covers
    all values of each parameter, but is the same each time.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not any(item.get_closest_marker(marker) for marker in LEFT_OUT):
            name = item.nodeid.split("::" if _is_large(item) else "[")[0]
            groups.setdefault(name, []).append(item)

    def shuffled(item: pytest.Item) -> bytes:
        return hashlib.sha256(item.nodeid.encode()).digest()

    kept = set()
    for group in groups.values():
        count = 1 if _is_large(group[0]) else most
        kept.update(sorted(group, key=shuffled)[:count])
    return kept


def _is_large(item: pytest.Item) -> bool:
    return item.get_closest_marker("large") is not None


# What is recorded.


@dataclass
class Progress:
    """The run of one mirrored module so far.

    Attributes:
        test: the test module.
        sha256, test_sha256: the files as the session found them.
        done: the tests that finished and passed, or were skipped.
        failed: the tests that did not pass.
        skipped: `case: reason`.
        errors: the largest error for each dtype.
        output: what the demo printed.
        recorded: the entry is written.
    """

    test: str
    sha256: str
    test_sha256: str
    done: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    errors: dict[str, records.Error] = field(default_factory=dict)
    output: str = ""
    recorded: bool = False


class Recorder:
    """Follows the reports, and writes an entry as soon as a snippet has earned it."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path
        self.progress: dict[str, Progress] = {}
        self.lost: dict[str, str] = {}
        self.hashes: dict[str, str] = {}
        self.environment: records.Environment | None = None
        try:
            records.load(path)
        except records.RecordError as error:
            if path == root / records.INTERPRETER:
                path.unlink()
                return
            raise pytest.UsageError(
                f"{error}\nRestore or delete the file; nothing was changed."
            ) from error

    def pytest_sessionstart(self) -> None:
        """Hash every snippet and test, before any of them is imported."""
        for path in (self.root / "snippets").rglob("*.py"):
            name = path.relative_to(self.root).as_posix()
            self.hashes[name] = records.file_hash(path)
        for path in (self.root / "tests/snippets").rglob("test_*.py"):
            name = path.relative_to(self.root).as_posix()
            self.hashes[name] = records.test_hash(self.root, name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported has failed."""
        snippet = self._snippet(report.nodeid)
        if report.failed and snippet:
            self._lose(snippet, "its tests cannot be collected")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test starts: from now on its snippet stands or falls."""
        snippet = self._snippet(nodeid)
        if snippet and snippet not in self.progress:
            test = nodeid.split("::")[0]
            self.progress[snippet] = Progress(
                test, self.hashes[f"snippets/{snippet}"], self.hashes[test]
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test is over."""
        snippet = self._snippet(report.nodeid)
        if not snippet or snippet not in self.progress:
            return
        progress = self.progress[snippet]
        case = report.nodeid.split("::", 1)[1]
        if str(report.when) == "???" and case in progress.done:
            return  # xdist: the worker went down, but only after this test
        if report.failed:
            progress.failed.add(case)
            self._lose(snippet, f"{case} failed")
        if report.skipped:
            progress.skipped[case] = _reason(report)
        if report.when == "teardown":
            progress.done.add(case)
            for name, value in report.user_properties:
                if name == "output":
                    progress.output = str(value)
                elif name == "accuracy" and isinstance(value, tuple | list):
                    _keep_largest(progress.errors, case, *value)
            size: int = report.module_size
            if len(progress.done) == size and not progress.failed:
                self._record(snippet, progress)

    def pytest_sessionfinish(self) -> None:
        """What was started and did not end well, or was edited, loses its entry."""
        for snippet, progress in self.progress.items():
            if not progress.recorded and not progress.failed:
                self._lose(snippet, "its tests did not all run")
            elif progress.recorded and not self._unchanged(snippet, progress):
                self._lose(snippet, "a file changed during the run")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Say what was recorded, and what was lost."""
        recorded = [
            name
            for name, progress in self.progress.items()
            if progress.recorded and name not in self.lost
        ]
        if not recorded and not self.lost:
            return
        terminalreporter.section("records")
        path = self.path
        if path.is_relative_to(self.root):
            path = path.relative_to(self.root)
        terminalreporter.line(f"{path}: {len(recorded)} snippets recorded")
        for snippet, reason in sorted(self.lost.items()):
            terminalreporter.line(f"not recorded: {snippet}: {reason}")

    def _snippet(self, nodeid: str) -> str | None:
        test = nodeid.split("::")[0]
        snippet = snippet_of(test)
        known = test in self.hashes and f"snippets/{snippet}" in self.hashes
        return snippet if known else None

    def _unchanged(self, snippet: str, progress: Progress) -> bool:
        path = self.root / "snippets" / snippet
        now = records.test_hash(self.root, progress.test)
        return (
            path.is_file()
            and records.file_hash(path) == progress.sha256
            and now == progress.test_sha256
        )

    def _record(self, snippet: str, progress: Progress) -> None:
        if not self._unchanged(snippet, progress):
            self._lose(snippet, "a file changed during the run")
            return
        self.environment = self.environment or environment()
        entry = records.Entry(
            sha256=progress.sha256,
            test=progress.test,
            test_sha256=progress.test_sha256,
            cases=len(progress.done - progress.skipped.keys()),
            skipped=[f"{case}: {why}" for case, why in progress.skipped.items()],
            errors=dict(sorted(progress.errors.items())),
            output=progress.output,
            environment=self.environment,
        )
        with records.editing(self.path) as record:
            record.snippets[snippet] = entry
        progress.recorded = True

    def _lose(self, snippet: str, reason: str) -> None:
        self.lost.setdefault(snippet, reason)
        if self.path.exists():
            with records.editing(self.path) as record:
                record.snippets.pop(snippet, None)


def _keep_largest(
    errors: dict[str, records.Error],
    case: str,
    dtype: str,
    error: float,
    bound: float,
) -> None:
    if dtype not in errors or error > errors[dtype].error:
        errors[dtype] = records.Error(error, bound, case)


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped, or was expected to fail."""
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}".removesuffix(": ")
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
