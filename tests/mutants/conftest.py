"""`--learn`: write down which test caught each mutant."""

from collections import defaultdict

import pytest

from tests.mutants import caught_by


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--learn",
        action="store_true",
        help="write down which test caught each mutant, to try it first from now on",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("learn", False) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Learn())


class Learn:
    """Collects what the mutants' tests report, from every worker."""

    def __init__(self) -> None:
        self._found: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == "caught_by":
                    snippet, why, test = value
                    self._found[snippet][why] = test

    def pytest_sessionfinish(self) -> None:
        # Not at the top: it reads every test module.
        from tests.mutants.test_mutants import ERRORS, TABLES

        if ERRORS:  # tests fail for them; what is known of their bugs is kept
            return
        listed = {
            snippet: {mutant.why for mutant in table}
            for snippet, table in TABLES.items()
        }
        caught_by.write(self._found, listed)
