"""The pytest plugin that writes down what the tests of the snippets showed."""

import pytest

_item: pytest.Item | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    for marker in (
        "gpu: needs a GPU; skipped where there is none",
        "leaves_tensors: the kernel leaves its tensors, and must be caught at it",
    ):
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test runs, for what it measures."""
    global _item
    _item = item


def pytest_runtest_teardown() -> None:
    """Nothing measured from here on belongs to the test."""
    global _item
    _item = None


def record_accuracy(dtype: str, error: float, bound: float) -> None:
    """Keep an error that the running test measured, and the bound it was held to."""
    if _item is not None:
        _item.user_properties.append(("accuracy", (dtype, error, bound)))
