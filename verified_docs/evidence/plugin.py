"""The pytest plugin that writes down what the tests of the snippets showed.

It adds one test to each module that mirrors a snippet: `demo` runs the snippet as a
reader would, and keeps what it prints. At its end, a session records its modules:

- with `--record FILE`, on a GPU, in the file that `make gpu` has begun;
- under Triton's interpreter, always, in records/interpreter/verification.json.

A session that ran only some of a module's tests, or was interrupted, shows too little
to be recorded. An expected failure is a failure, and a test that checks nothing counts
as skipped. With `--due`, snippets that the interpreter's record says have passed, of
the files as they are, are not tried in full again: the demo of each is, and one case of
each test, which may be a suite's and then serves all of them.
"""

import subprocess
import sys
from collections.abc import Callable, Generator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from verified_docs import languages, layout
from verified_docs.code import snippets
from verified_docs.evidence import machine, manifest, prepared, records

DEMO_SECONDS = 300
CHOICES = ("keyword", "markexpr", "deselect", "lf", "stepwise")
KEPT = 2**30  # bytes of a GPU that a process may keep from test to test


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what the Makefile passes."""
    add = parser.getgroup("verified_docs").addoption
    what = "record what is seen on this GPU; `make gpu` begins the file"
    add("--record", type=Path, metavar="FILE", help=what)
    what = "without demos, and without kernels that leave their tensors on purpose"
    add("--memcheck", action="store_true", help=what)
    what = "without a GPU: one case of each test of what is known to pass, and demos"
    add("--due", action="store_true", help=what)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and start the recorder in the one process that writes."""
    for marker in (
        "gpu: needs a GPU; skipped where there is none",
        "large: takes tens of GB of a GPU, so that such tests go one at a time",
        "leaves_tensors: the kernel leaves its tensors, and must be caught at it",
        "demo: runs the snippet as a reader would",
    ):
        config.addinivalue_line("markers", marker)
    file: Path | None = config.getoption("record")
    on_gpu = machine.gpu_name() is not None
    passed: set[str] = set()
    if not on_gpu:
        try:  # Now, not when the tests have run.
            record = records.load(config.rootpath / layout.verification_file())
        except records.RecordError as error:
            raise pytest.UsageError(str(error)) from error
        if config.getoption("due"):
            passed = known(config.rootpath, record)
    judge = Judge(config, passed)
    config.pluginmanager.register(judge, "snippet_judge")
    if hasattr(config, "workerinput") or (file is None and on_gpu):
        return
    config.pluginmanager.register(Recorder(config, file, passed), "snippet_recorder")


def known(root: Path, record: records.Verification) -> set[str]:
    """The snippets that passed as they are, with the versions that are installed."""
    versions = records.versions(machine.facts(root))
    return {
        name
        for name, entries in record.snippets.items()
        if (entry := entries.get(versions))
        and entry.state == "passed"
        and not entry.changed(root, name)
    }


# What a running test measures.

_item: pytest.Item | None = None
_checked = False


def checked() -> None:
    """Note that the running test has checked something."""
    global _checked
    _checked = True


def record_accuracy(dtype: str, error: float, bound: float) -> None:
    """Keep an error that the running test measured, and the bound it was held to.

    Raises AssertionError for an error that is not from 0 to the bound.
    """
    if not 0 <= error <= bound < float("inf"):
        raise AssertionError(f"the error {error} is not in 0 to {bound}")
    checked()
    if _item:
        _item.user_properties.append(("accuracy", (dtype, error, bound)))


# What is collected: the mirrored modules, each with its demo.


@pytest.mark.demo
def demo(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """Run a snippet on its own, as a reader would, and keep what it prints."""
    root = request.config.rootpath
    snippet = layout.tested_by(root)[request.node.parent.nodeid]
    arguments = snippets.arguments(root, snippet)
    triton: Any = sys.modules.get("triton")
    if triton and triton.knobs.runtime.interpret:
        run = prepared.run(root, arguments, DEMO_SECONDS)
    else:
        run = subprocess.run(
            [*languages.language(snippet).command, *arguments],
            cwd=root,
            capture_output=True,
            encoding="utf-8",
            timeout=DEMO_SECONDS,
        )
    if run.returncode or not run.stdout.strip():
        reason = f"exit status {run.returncode}" if run.returncode else "prints nothing"
        told = f"{layout.snippet_file(snippet)}: {reason}\n{run.stderr}"
        pytest.fail(told, pytrace=False)
    checked()
    record_property("output", run.stdout)


def _no_graph(*_: object, **__: object) -> None:
    """Capturing takes memory, which under compute-sanitizer comes from no cache."""
    pytest.skip("a graph cannot be captured where PyTorch keeps no memory of its own")


class Judge:
    """Gives each mirrored module a demo, and says which of its tests count."""

    def __init__(self, config: pytest.Config, known: Set[str]) -> None:
        self.tested = layout.tested_by(config.rootpath)
        self.memcheck: bool = config.getoption("memcheck")
        self.known = known

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A mirrored module holds its own tests, then the demo."""
        report = yield
        if collector.nodeid in self.tested and report.passed and not self.memcheck:
            made = pytest.Function.from_parent(collector, name="demo", callobj=demo)
            report.result.append(made)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Refuse what contradicts a snippet's name, and let every process draw alike.

        From here on Hypothesis looks for constants to draw in the local modules that
        happen to be loaded. No setting of it prevents that (6.170): now, none is local.
        """
        if drawing := sys.modules.get("hypothesis.internal.conjecture.providers"):
            patch = pytest.MonkeyPatch()
            config.add_cleanup(patch.undo)
            known = "is_local_module_file"
            patch.setattr(drawing, known, lambda file: False, raising=False)
        for item in items:
            snippet = self.tested.get(item.nodeid.split("::")[0], "wrong_")
            claimed = item.get_closest_marker("leaves_tensors")
            if claimed and not layout.is_wrong(snippet):
                reason = f"leaves_tensors: {snippet} is not called wrong_*"
                raise pytest.UsageError(reason)
            if why := getattr(getattr(item, "module", None), "NO_ACCURACY", ""):
                item.user_properties.append(("no_accuracy", why))
        if self.memcheck:
            leave = [each.get_closest_marker("leaves_tensors") for each in items]
            items[:] = [each for each, it in zip(items, leave, strict=True) if not it]
        spared = self._spared(items)
        if spared:
            config.hook.pytest_deselected(items=spared)
            items[:] = [each for each in items if each not in spared]

    def _spared(self, items: list[pytest.Item]) -> set[pytest.Item]:
        """Of each test, as it is written, all cases of known snippets but one.

        That one looks random, and is always the same.
        """

        def place(item: pytest.Item) -> tuple[bool, int]:
            needs_gpu = item.get_closest_marker("gpu") is not None
            return needs_gpu, crc32(item.nodeid.encode())

        known = [
            item
            for item in items
            if self.tested.get(item.nodeid.split("::")[0]) in self.known
            and not item.get_closest_marker("demo")
        ]
        tried = {item.location[:2]: item for item in sorted(known, key=place)[::-1]}
        return {*known} - {*tried.values()}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Watch for checks that are no assert statements."""
        global _item, _checked
        _item, _checked = item, bool(item.get_closest_marker("leaves_tensors"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pytest, "raises", _counted(pytest.raises))
            if testing := getattr(sys.modules.get("torch"), "testing", None):
                patch.setattr(testing, "assert_close", _counted(testing.assert_close))
            if self.memcheck and (torch := sys.modules.get("torch")):
                patch.setattr(torch.cuda, "graph", _no_graph)
            return (yield)

    def pytest_runtest_logfinish(self) -> None:
        """Give back what a test took of the GPU: other processes test beside it."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda and cuda.is_initialized() and cuda.memory_reserved() > KEPT:
            cuda.empty_cache()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """No failure is expected, no skip lacks a reason, no pass is for nothing."""
        report = yield
        if item.nodeid.split("::")[0] not in self.tested:
            return report
        if hasattr(report, "wasxfail"):
            return _failed(report, "a failure is not to be expected: pytest.raises is")
        if report.skipped and _reason(report) in ("", "unconditional skip"):
            return _failed(report, "it is skipped without a reason")
        if report.when == "call" and report.passed and not _checked:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = path, line or 0, "Skipped: it checks nothing"
        return report


def _failed(report: pytest.TestReport, reason: str) -> pytest.TestReport:
    vars(report).pop("wasxfail", None)
    report.outcome, report.longrepr = "failed", reason
    return report


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        checked()
        return check(*args, **kwargs)

    return counted


# What is recorded.


@dataclass
class Seen:
    """What the session has shown of one module so far, by case."""

    done: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    errors: dict[str, records.Error] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def measured(self, case: str, dtype: str, error: float, bound: float) -> None:
        """Keep the largest error of a dtype."""
        if dtype not in self.errors or error > self.errors[dtype].error:
            self.errors[dtype] = records.Error(error, bound, case)


class Recorder:
    """Follows the reports, and writes what they come to when the session ends."""

    def __init__(
        self, config: pytest.Config, file: Path | None, known: Set[str]
    ) -> None:
        self.config = config
        self.known = known
        self.root = config.rootpath
        self.alone = file is not None
        self.path = file or self.root / layout.verification_file()
        self.tested = layout.tested_by(self.root)
        every = manifest.everything(self.root)
        self.hashes = {path: records.sha256(self.root / path) for path in every}
        self.seen: dict[str, Seen] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test is over."""
        test, _, case = report.nodeid.partition("::")
        if test not in self.tested:
            return
        seen = self.seen.setdefault(self.tested[test], Seen())
        if report.failed and case not in seen.failed:
            seen.failed.append(case)
        elif report.skipped:
            seen.skipped[case] = _reason(report)
        if report.when == "teardown":
            seen.done.add(case)
            for name, value in report.user_properties:
                if name == "accuracy" and isinstance(value, tuple | list):
                    seen.measured(case, *value)
                else:
                    seen.told[name] = str(value)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Record every module that ran whole, of files that are what they were."""
        chosen = any(self.config.getoption(name, None) for name in CHOICES)
        chosen = chosen or any("::" in argument for argument in self.config.args)
        stopped = session.shouldstop or session.shouldfail or exitstatus > 1
        if chosen or stopped or not self.seen:
            return
        left = {item.nodeid for item in session.items}  # none under xdist
        for snippet, seen in self.seen.items():
            left -= {f"{layout.test_file(snippet)}::{case}" for case in seen.done}
        if self.alone:  # `make gpu` has begun the run.
            runs = records.load(self.path).runs
            if machine.gpu_name() is None:
                for seen in self.seen.values():
                    seen.failed.append("TRITON_INTERPRET was set on the way")
        else:
            facts = machine.facts(self.root)
            runs = {machine.run_name(facts): facts}
        run = next(iter(runs))
        find = manifest.loaded if self.alone else manifest.imported
        entries = {}
        for snippet, seen in self.seen.items():
            files = find(self.root, snippet)
            hashes = {path: self.hashes.get(path, "") for path in sorted(files)}
            whole = snippet not in self.known and not any(
                each.startswith(layout.test_file(snippet)) for each in left
            )
            if self.config.getoption("memcheck") and not seen.errors:
                seen.told["no_accuracy"] = "these few cases measure none"
            if whole and not records.changed(self.root, hashes):
                entries[snippet] = _entry(run, seen, hashes)
        if entries:  # A merge of none drops the run, which other modules need.
            records.merge(self.path, runs, entries, self.root)


def _entry(run: str, seen: Seen, hashes: records.Manifest) -> records.Entry:
    """What a module that ran whole has shown."""
    declared = seen.told.get("no_accuracy", "")
    failed = list(seen.failed)
    if bool(seen.errors) == bool(declared) and not failed:
        failed = ["NO_ACCURACY says why nothing is measured, where nothing is"]
    return records.Entry(
        run=run,
        state="failed" if failed else "passed",
        failed=failed,
        cases=len(seen.done - seen.skipped.keys() - set(seen.failed)),
        skipped=seen.skipped,
        errors=dict(sorted(seen.errors.items())),
        no_accuracy=declared,
        output=seen.told.get("output", ""),
        manifest=hashes,
    )


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    told = report.longrepr
    text = told[2] if isinstance(told, tuple | list) else str(told)
    return text.removeprefix("Skipped: ").removeprefix("Skipped").strip()
