"""A process that has started pytest and imported all but the snippets.

Each run is a fork of it: it collects one module, which imports the snippet as it is on
the disk then, and ends with its process.
"""

import contextlib
import dataclasses
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

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


@dataclass(frozen=True)
class Run:
    """What to run.

    Attributes:
        nodeid: a test module, or one test.
        seconds: how long it may take.
        may_not_compile: the run may end with a test that fails only because of that.
        first: the test to try first, relative to its module; "" for none.
    """

    nodeid: str
    seconds: float
    may_not_compile: bool = True
    first: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a run said.

    Attributes:
        exit_code: pytest's; None if it took too long.
        failed: the test that failed, relative to its module; "" if none did. One that
            fails only because the mutant does not compile, if there is no other.
        exceptions: the types of the exception it raised and of its causes.
        output: how it failed, or what pytest printed.
    """

    exit_code: int | None
    failed: str = ""
    exceptions: tuple[str, ...] = ()
    output: str = ""

    @property
    def does_not_compile(self) -> list[str]:
        """The exceptions that say so."""
        return sorted(DOES_NOT_COMPILE.intersection(self.exceptions))


def serve(folder: Path, log: Path, runs: Connection) -> None:
    """Take a `Run`, give a `Verdict`, until the connection is closed.

    It runs pytest in the copy of the tree, and nothing of the original. Where pytest
    cannot start, it ends.
    """
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for name in [n for n in os.environ if n.startswith("PYTEST_")]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(folder)
    sys.dont_write_bytecode = True
    gc.disable()  # what is shared is too much to look through
    # The tensors are small, and another worker has the other core. Nor can a forked
    # process use threads that were started before.
    torch.set_num_threads(1)
    ours = ("snippets", "tests", "verified_docs")
    for name in [n for n in sys.modules if n.partition(".")[0] in ours]:
        if not name.startswith("tests.mutants."):  # this module
            del sys.modules[name]
    sys.path[:] = [p for p in sys.path if not (Path(p) / "verified_docs").is_dir()]
    importlib.invalidate_caches()

    server = _Server(log, runs)
    exit_code = pytest.main(
        [
            "tests/snippets",
            "-q",
            *("-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutant"),
            *("-p", "no:cacheprovider", "-p", "no:unraisableexception"),
            *("-m", "not demo"),
            *("--assert=plain", "--capture=sys", "--tb=native"),
            f"--rootdir={folder}",
            f"--config-file={folder / 'pyproject.toml'}",
        ],
        plugins=[server],
    )
    if server.fork:
        server.fork.finish(exit_code)


class _Server:
    """A pytest plugin: stops before the collection, and forks a process for each run.

    Args:
        log: where the output goes.
        runs: where the runs come from.

    Attributes:
        fork: in a forked process, the plugin that watches its run.
    """

    def __init__(self, log: Path, runs: Connection) -> None:
        self.fork: _Fork | None = None
        self._log = log
        self._runs = runs

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Only a forked process comes out of here."""
        _import_shared_modules()
        for run in self._wanted():
            receive, send = multiprocessing.Pipe(duplex=False)
            sys.stdout.flush()
            process = os.fork()
            if process:
                send.close()
                self._runs.send(self._verdict(run, process, receive))
                continue
            os.ftruncate(1, 0)
            self.fork = _Fork(run, send)
            session.config.pluginmanager.register(self.fork)
            session.config.args = [run.nodeid]
            return

    def _wanted(self) -> Iterator[Run]:
        """What to run; after the last, the process ends."""
        while True:
            try:
                yield self._runs.recv()
            except EOFError:
                os._exit(0)

    def _verdict(self, run: Run, process: int, receive: Connection) -> Verdict:
        """What a forked process says, or how it ended without a word."""
        verdict = None
        with receive, contextlib.suppress(EOFError):
            verdict = receive.recv() if receive.poll(run.seconds) else Verdict(None)
        if verdict:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        verdict = verdict or Verdict(os.waitstatus_to_exitcode(status))
        output = verdict.output or self._log.read_text("utf-8")
        return dataclasses.replace(verdict, output=output)


def _import_shared_modules() -> None:
    """Import what the test modules share, unless it imports a snippet."""
    for path in sorted(Path("tests/snippets").rglob("*.py")):
        if path.name == "conftest.py" or path.name.startswith("test_"):
            continue
        before = set(sys.modules)
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))
        added = set(sys.modules) - before
        if any(name.partition(".")[0] == "snippets" for name in added):
            for name in added:
                del sys.modules[name]


class _Fork:
    """A pytest plugin: soon the test that catches the mutant, and how it fails.

    Args:
        run: what is run.
        send: where to say it.
    """

    def __init__(self, run: Run, send: Connection) -> None:
        self._run = run
        self._send = send
        self._found = Verdict(None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The order decides how long a run takes, and nothing else."""
        items.sort(key=self._place)

    def _place(self, item: pytest.Item) -> int:
        """After what is likely: refusals launch nothing, properties take long."""
        if item.nodeid.partition("::")[2] == self._run.first:
            return 0
        if "refuses" in item.name:
            return 1
        return 3 if hasattr(item.obj, "hypothesis") else 2

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo
    ) -> None:
        """A failure that says nothing about the tests counts only if all are such."""
        if not isinstance(node, pytest.Item):
            return
        error = call.excinfo.value
        found = Verdict(
            exit_code=None,
            failed=node.nodeid.split("::", 1)[1],
            exceptions=tuple(type(e).__name__ for e in _causes(error)),
            output="".join(traceback.format_exception(error)),
        )
        if not self._found.failed:
            self._found = found
        if self._run.may_not_compile or not found.does_not_compile:
            self._found = found
            self.finish(pytest.ExitCode.TESTS_FAILED)

    def finish(self, exit_code: int) -> None:
        """Say what was found, and end the process without further ado."""
        sys.stdout.flush()
        verdict = dataclasses.replace(self._found, exit_code=int(exit_code))
        self._send.send(verdict)
        self._send.close()
        os._exit(0)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
