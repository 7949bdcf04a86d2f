"""Runs a snippet's tests against a mutant, in a copy of the tree and a fresh process.

The processes are forked from one that has imported torch, Triton and pytest but run
nothing, so a mutant costs what its tests cost.
"""

import gc
import importlib
import multiprocessing
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.mutations import Mutation

PRELOAD = ["torch", "triton", "triton.language", "numpy", "pytest", "hypothesis"]
COPIED = ["snippets", "tests/harness", "tests/snippets", "verified_docs"]
FILES = [
    "pyproject.toml",
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/mutations/__init__.py",
]
# A mutant that shows in no result but in an error of these says that the code is not
# Triton or not Python, which the tests do not need to find out.
DOES_NOT_COMPILE = {
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
    "InterpreterError",
    "ImportError",
    "NameError",
    "SyntaxError",
}
SECONDS = 120


@dataclass(frozen=True)
class Verdict:
    """What a test run said.

    Attributes:
        exit_code: pytest's; None if it took too long.
        failed: the first test that failed, relative to its module; "" if none did.
        exceptions: the types of the exception it raised and of its causes.
        output: all that pytest printed.
    """

    exit_code: int | None
    failed: str
    exceptions: list[str]
    output: str


class Survived(AssertionError):
    """A mutation that the tests did not catch, or not in the right way."""


class Tree:
    """A copy of what the tests of the snippets need, to plant mutations in.

    Args:
        root: the repository.
        folder: an empty folder for the copy.
        seconds: how long one run may take.
    """

    def __init__(self, root: Path, folder: Path, seconds: float = SECONDS) -> None:
        self.root = root
        self.folder = folder
        self.seconds = seconds
        self._green: set[str] = set()
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(
                    root / name,
                    folder / name,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (root / name).is_file():
                shutil.copy(root / name, folder / name)

    def demand_caught(self, snippet: str, mutation: Mutation) -> Verdict:
        """Plant a mutation; its tests must fail, and the failing one pass without it.

        Raises:
            ValueError: the mutation does not fit the snippet.
            Survived: the tests pass, cannot be run, take too long, or fail only because
                the mutant does not compile.
        """
        path = self.folder / "snippets" / snippet
        text = path.read_text(encoding="utf-8")
        test = Path("tests/snippets", snippet)
        test = test.with_name(f"test_{test.name}")
        path.write_text(mutation.apply(text), encoding="utf-8", newline="")
        try:
            verdict = self.run(str(test))
        finally:
            path.write_text(text, encoding="utf-8", newline="")

        title = f"{snippet}, {mutation.why!r}"
        if verdict.exit_code is None:
            raise Survived(f"{title}: the tests still ran after {self.seconds:g} s")
        if verdict.exit_code == pytest.ExitCode.OK:
            raise Survived(f"{title}: the tests of {test} pass nevertheless")
        if verdict.exit_code != pytest.ExitCode.TESTS_FAILED or not verdict.failed:
            raise Survived(f"{title}: the tests cannot be run:\n{verdict.output}")
        broken = DOES_NOT_COMPILE.intersection(verdict.exceptions)
        if broken and not mutation.may_not_compile:
            raise Survived(
                f"{title}: {verdict.failed} fails only because the mutant does not "
                f"compile ({', '.join(sorted(broken))}); if that is the point, say "
                f"may_not_compile=True\n{verdict.output}"
            )
        self._demand_green(f"{test}::{verdict.failed}")
        return verdict

    def _demand_green(self, nodeid: str) -> None:
        """The test that caught a mutant must pass on the snippet as it is.

        Of each parametrised test, the first case that catches one is tried.
        """
        test = nodeid.split("[")[0]
        if test in self._green:
            return
        verdict = self.run(nodeid)
        if verdict.exit_code != pytest.ExitCode.OK:
            raise Survived(f"{nodeid} fails without any mutation:\n{verdict.output}")
        self._green.add(test)

    def run(self, nodeid: str) -> Verdict:
        """Run a test module, or one test, in the copy, up to the first failure."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOAD)
        log = self.folder / "pytest.log"
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(self.folder, nodeid, log, send))
        process.start()
        send.close()
        try:
            if not receive.poll(self.seconds):
                return Verdict(None, "", [], "")
            try:
                exit_code, failed, exceptions = receive.recv()
            except EOFError:
                process.join()
                exit_code, failed, exceptions = process.exitcode, "", []
            return Verdict(exit_code, failed, exceptions, log.read_text("utf-8"))
        finally:
            process.kill()
            process.join()


class _FirstFailure:
    """A pytest plugin: soon the first test that fails, and how it does.

    Args:
        send: where to say it: (exit code, test, types of its exceptions).
    """

    def __init__(self, send: Connection) -> None:
        self.test = ""
        self.exceptions: list[str] = []
        self._send = send

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """One case of each test, then another of each, and so on.

        Most mutants show in many cases of a few tests. Refusals launch nothing, so all
        of them go first, those of the file before those that all files share.
        Properties take long and go last.
        """
        written = {item: place for place, item in enumerate(items)}
        rounds: dict[pytest.Item, tuple[bool, int, int]] = {}
        seen: Counter[str] = Counter()
        for item in sorted(items, key=lambda i: sha256(i.nodeid.encode()).digest()):
            test = item.nodeid.split("[")[0]
            is_property = hasattr(getattr(item, "obj", None), "hypothesis")
            place = seen[test], 0
            if "refuses" in test:
                shared = item.function.__module__ != item.module.__name__
                place = shared - 2, written[item]
            rounds[item] = is_property, *place
            seen[test] += 1
        items.sort(key=rounds.__getitem__)

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo
    ) -> None:
        if isinstance(node, pytest.Item) and not self.test and call.excinfo:
            self.test = node.nodeid.split("::", 1)[1]
            self.exceptions = [type(e).__name__ for e in _causes(call.excinfo.value)]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Where nobody needs the output, do not wait for it."""
        if self.test and not DOES_NOT_COMPILE.intersection(self.exceptions):
            self.finish(exitstatus)

    def finish(self, exit_code: int) -> None:
        """Say what happened, and end the process without further ado."""
        sys.stdout.flush()
        self._send.send((int(exit_code), self.test, self.exceptions))
        self._send.close()
        os._exit(0)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _child(folder: Path, nodeid: str, log: Path, send: Connection) -> None:
    """In the forked process: run pytest in the copy, and nothing of the original."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for name in [n for n in os.environ if n.startswith("PYTEST_")]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(folder)
    sys.dont_write_bytecode = True
    gc.disable()
    ours = ("snippets", "tests", "verified_docs")
    for name in [n for n in sys.modules if n.partition(".")[0] in ours]:
        del sys.modules[name]
    sys.path[:] = [p for p in sys.path if not (Path(p) / "verified_docs").is_dir()]
    importlib.invalidate_caches()

    first = _FirstFailure(send)
    exit_code = pytest.main(
        [
            nodeid,
            "-x",
            "-q",
            *("-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutant"),
            *("-p", "no:cacheprovider"),
            *("-m", "not demo"),
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
            f"--rootdir={folder}",
            f"--config-file={folder / 'pyproject.toml'}",
        ],
        plugins=[first],
    )
    first.finish(exit_code)
