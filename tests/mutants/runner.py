"""Plants mutants in a copy of the tree, and runs the tests of their snippets."""

import multiprocessing
import shutil
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.mutants import Mutant
from tests.mutants.server import Run, Verdict, serve

PRELOAD = [
    *("torch", "triton", "triton.language", "numpy", "pytest", "hypothesis"),
    # What a first launch imports:
    *("numpy.ma", "triton.compiler.code_generator", "triton.experimental.gluon"),
]
COPIED = ["snippets", "tests/harness", "tests/snippets", "verified_docs"]
FILES = [
    "pytest.ini",
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/mutants/__init__.py",
]
SECONDS = 120


class Survived(AssertionError):
    """A mutant that the tests did not catch, or not in the right way."""


class Tree:
    """A copy of what the tests of the snippets need, to plant mutants in.

    Args:
        root: the repository.
        folder: an empty folder for the copy.
        seconds: how long one run may take.
        caught_by: which test to try first, by snippet and name of the bug.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        seconds: float = SECONDS,
        caught_by: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        self.root = root
        self.folder = folder
        self.seconds = seconds
        self.caught_by = caught_by
        self._green: set[str] = set()
        self._server: Connection | None = None
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

    def demand_caught(self, snippet: str, mutant: Mutant) -> Verdict:
        """Plant a mutant; its tests must fail, and the failing one pass without it.

        Raises:
            ValueError: the mutant does not fit the snippet.
            Survived: the tests pass, cannot be run, take too long, or fail only because
                the mutant does not compile.
        """
        path = self.folder / "snippets" / snippet
        text = path.read_text(encoding="utf-8")
        test = Path("tests/snippets", snippet)
        test = test.with_name(f"test_{test.name}")
        path.write_text(mutant.apply(text), encoding="utf-8", newline="")
        try:
            first = self.caught_by.get(snippet, {}).get(mutant.why, "")
            run = Run(str(test), self.seconds, mutant.may_not_compile, first)
            verdict = self.run(run)
        finally:
            path.write_text(text, encoding="utf-8", newline="")

        title = f"{snippet}, {mutant.why!r}"
        if verdict.exit_code is None:
            raise Survived(f"{title}: the tests still ran after {self.seconds:g} s")
        if verdict.exit_code == pytest.ExitCode.OK:
            raise Survived(f"{title}: the tests of {test} pass nevertheless")
        if verdict.exit_code != pytest.ExitCode.TESTS_FAILED or not verdict.failed:
            raise Survived(f"{title}: the tests cannot be run:\n{verdict.output}")
        if verdict.does_not_compile and not mutant.may_not_compile:
            raise Survived(
                f"{title}: {verdict.failed} fails only because the mutant does not "
                f"compile ({', '.join(verdict.does_not_compile)}); if that is the "
                f"point, say may_not_compile=True\n{verdict.output}"
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
        verdict = self.run(Run(nodeid, self.seconds))
        if verdict.exit_code != pytest.ExitCode.OK:
            raise Survived(f"{nodeid} fails without any mutant:\n{verdict.output}")
        self._green.add(test)

    def run(self, run: Run) -> Verdict:
        """Run a test module in the copy, up to a failure that counts; or one test."""
        log = self.folder / "pytest.log"
        if self._server is None:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(PRELOAD)
            self._server, theirs = context.Pipe()
            serving = self.folder, log, theirs
            context.Process(target=serve, args=serving, daemon=True).start()
            theirs.close()
        try:
            self._server.send(run)
            return self._server.recv()
        except (EOFError, OSError):
            self.close()
            output = log.read_text("utf-8")
            return Verdict(pytest.ExitCode.INTERNAL_ERROR, output=output)

    def close(self) -> None:
        """End the process that the runs are forked from."""
        if self._server:
            self._server.close()
            self._server = None
