"""Holds the mutants of a snippet against its tests."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.mutants import Mutant
from tests.mutants.server import Run, Verdict
from verified_docs import layout

MOST = 8  # of a piece: what is lost if a run is cut


def pieces(mutants: list[Mutant]) -> list[list[Mutant]]:
    """The mutants in pieces; neighbours, which are alike, in different ones."""
    number = -(-len(mutants) // MOST)
    return [mutants[i::number] for i in range(number)]


def judge(
    root: Path,
    snippet: str,
    hints: Mapping[Mutant, str],
    run: Callable[[Run], Verdict],
) -> tuple[dict[Mutant, str], list[str]]:
    """Plant each mutant; a test must fail that passes without it.

    Args:
        root: the repository.
        snippet: the snippet's name.
        hints: the mutants, and for each the test to try first, or "".
        run: runs tests.

    Returns:
        For each mutant that was caught the test, relative to its module, or "" if a
        test never ends; and what is wrong with the others. If a test fails without any
        mutant, none was caught.
    """
    name, test = layout.snippet_file(snippet), layout.test_file(snippet)
    module = name.removesuffix(".py").replace("/", ".")
    text = (root / name).read_text("utf-8")
    caught, faults = {}, []
    for mutant, first in hints.items():
        planted = module, mutant.apply(text), first, mutant.may_not_compile
        verdict = run(Run((test,), *planted))
        if fault := _fault(verdict, mutant):
            faults.append(f"{snippet}, {mutant.why!r}: {fault}")
        else:
            caught[mutant] = verdict.failed
    cases = sorted({f"{test}::{case}" for case in caught.values() if case})
    verdict = run(Run(tuple(cases))) if cases else Verdict(pytest.ExitCode.OK)
    if verdict.exit_code != pytest.ExitCode.OK:
        said = f"{snippet}: {verdict.failed} fails without any mutant: {verdict.output}"
        return {}, [*faults, said]
    return caught, faults


def _fault(verdict: Verdict, mutant: Mutant) -> str:
    """Why a verdict does not say that the tests see the bug; "" if it does."""
    if verdict.exit_code is None:
        return "" if mutant.may_hang else "a test takes too long"
    if verdict.exit_code == pytest.ExitCode.OK:
        return "the tests pass nevertheless"
    if verdict.exit_code != pytest.ExitCode.TESTS_FAILED or not verdict.failed:
        return f"the tests cannot be run: {verdict.output}"
    if not verdict.compiles and not mutant.may_not_compile:
        return (
            f"{verdict.failed} fails only because the mutant does not compile; if that "
            f"is the point, say may_not_compile=True: {verdict.output}"
        )
    return ""
