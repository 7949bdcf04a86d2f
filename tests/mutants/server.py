"""A process that has started pytest and imported all but the snippets.

Each run is a fork of it: it collects some tests, whose import of the snippet finds the
text with the bug, and ends with its process. No file of the repository changes.
"""

import contextlib
import gc
import importlib
import importlib.util
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

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
SAID = 42  # how a process ends that has sent its verdict


@dataclass(frozen=True)
class Run:
    """What to run.

    Attributes:
        nodeids: a test module, or some of its tests.
        module: the snippet that has the bug, as Python imports it; "" for none.
        text: the snippet's text with the bug.
        first: the test to try first, relative to its module; "" for none.
        may_not_compile: the run may end with a test that fails only because of that.
    """

    nodeids: tuple[str, ...]
    module: str = ""
    text: str = ""
    first: str = ""
    may_not_compile: bool = True


@dataclass(frozen=True)
class Verdict:
    """What a run said.

    Attributes:
        exit_code: pytest's; None if a test took too long.
        failed: the test that failed, relative to its module; "" if none did. One that
            fails only because the mutant does not compile, if there is no other.
        compiles: did it fail for another reason?
        output: how it failed, or why there are no tests.
    """

    exit_code: int | None
    failed: str = ""
    compiles: bool = True
    output: str = ""


class Server:
    """The process that the runs are forked from; it starts with the first run.

    Args:
        root: the repository.
        folder: where snippets with a bug are written.
        seconds: how long a test may take; its setup, as long again.
    """

    def __init__(self, root: Path, folder: Path, seconds: int) -> None:
        self._serving = root, folder, seconds
        self._pipe: Connection | None = None

    def run(self, run: Run) -> Verdict:
        """Run the tests, up to a failure that counts."""
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            serving = *self._serving, theirs
            context.Process(target=serve, args=serving, daemon=True).start()
            theirs.close()
        try:
            self._pipe.send(run)
            return self._pipe.recv()
        except (EOFError, OSError):
            self.close()
            return Verdict(pytest.ExitCode.INTERNAL_ERROR, output="pytest cannot start")

    def close(self) -> None:
        """End the process."""
        if self._pipe:
            self._pipe.close()
            self._pipe = None


def serve(root: Path, folder: Path, seconds: int, runs: Connection) -> None:
    """Take a `Run`, give a `Verdict`, until the connection is closed."""
    import torch

    from verified_docs.evidence import machine

    for name in [n for n in os.environ if n.startswith("PYTEST_")]:
        del os.environ[name]
    # A process that has used the GPU, if only to ask for its name, forks none that can.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    machine.gpu_name = lambda: "not asked"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(root)
    sys.dont_write_bytecode = True
    gc.disable()  # what is shared is too much to look through
    # The tensors are small, and another worker has the other core. Nor can a forked
    # process use threads that were started before.
    torch.set_num_threads(1)
    # This module lies in the repository; all else is looked for below `root`.
    for name in [n for n in sys.modules if n.partition(".")[0] == "tests"]:
        if not name.startswith("tests.mutants."):
            del sys.modules[name]
    sys.path.insert(0, str(root))
    pytest.main(
        [
            "tests/snippets",
            "-q",
            *("-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutant"),
            *("-p", "no:cacheprovider", "-p", "no:unraisableexception"),
            *("-m", "not demo", "--assert=plain", "--capture=sys", "--tb=native"),
            f"--rootdir={root}",
            f"--config-file={root / 'pytest.ini'}",
        ],
        plugins=[Forks(folder, seconds, runs)],
    )


class Forks:
    """A pytest plugin: before the collection, it forks a process for each run."""

    def __init__(self, folder: Path, seconds: int, runs: Connection) -> None:
        self._folder = folder
        self._seconds = seconds
        self._runs = runs

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Only a forked process comes out of here; after the last run, none does."""
        for path in sorted(Path("tests/snippets").glob("*/suite.py")):
            importlib.import_module(".".join(path.with_suffix("").parts))
        with contextlib.suppress(EOFError):
            while run := self._runs.recv():
                process = os.fork()
                if not process:
                    if run.module:
                        plant(run.module, run.text, self._folder)
                    fork = Fork(run, self._runs, self._seconds)
                    session.config.pluginmanager.register(fork)
                    session.config.args = list(run.nodeids)
                    return
                # It says what it found, or ends without a word.
                ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                if ended == -signal.SIGALRM:
                    self._runs.send(Verdict(None))
                elif ended != SAID:
                    self._runs.send(Verdict(ended, output="the process ended"))
        os._exit(0)


def plant(module: str, text: str, folder: Path) -> None:
    """From now on, to import this module is to run this text."""
    assert module not in sys.modules, f"{module} was imported before its tests were"
    path = folder / f"{module}.py"
    path.write_text(text, encoding="utf-8", newline="")

    class Planted:
        """Finds the one module."""

        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            if name != module:
                return None
            return importlib.util.spec_from_file_location(name, path)

    sys.meta_path.insert(0, Planted)


class Fork:
    """A pytest plugin: soon the test that catches the mutant, and how it fails."""

    def __init__(self, run: Run, runs: Connection, seconds: int) -> None:
        self._run = run
        self._runs = runs
        self._seconds = seconds
        self._found = Verdict(None)
        self.pytest_runtest_setup()

    def pytest_runtest_setup(self) -> None:
        """Unless there is another within that time, SIGALRM ends the process."""
        signal.alarm(self._seconds)

    pytest_runtest_call = pytest_runtest_setup  # a setup may wait for its turn

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
        error = call.excinfo.value
        found = Verdict(
            exit_code=None,
            failed=node.nodeid.partition("::")[2] if hasattr(node, "runtest") else "",
            compiles=DOES_NOT_COMPILE.isdisjoint(
                type(e).__name__ for e in _causes(error)
            ),
            output="".join(traceback.format_exception(error, limit=-2)),
        )
        if not self._found.failed:
            self._found = found
        if found.failed and (self._run.may_not_compile or found.compiles):
            self._found = found
            self.pytest_sessionfinish(pytest.ExitCode.TESTS_FAILED)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Say what was found, and end the process without further ado."""
        self._runs.send(replace(self._found, exit_code=int(exitstatus)))
        os._exit(SAID)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
