"""Fixtures of the snippets' tests.

`poisoned` and `in_bounds` watch every test. A test marked `leaves_tensors` is one of a
kernel that is wrong on purpose: it passes if the kernel is caught outside its tensors.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
from hypothesis import Phase, settings

from tests.harness import poison
from tests.harness.bounds import Bounds, OutOfBounds
from tests.harness.language import replaced_once
from tests.harness.thin import thinned
from verified_docs.evidence import plugin

# The interpreter is slow, and a test that fails must fail again.
settings.register_profile(
    "snippets",
    max_examples=100 if torch.cuda.is_available() else 30,
    deadline=None,
    derandomize=True,
    database=None,
)
# A mutant needs no smallest example.
mutant = set(Phase) - {Phase.shrink, Phase.explain}
settings.register_profile("mutant", settings.get_profile("snippets"), phases=mutant)
settings.register_profile("thin", settings.get_profile("snippets"), max_examples=5)
settings.load_profile("snippets")

# Most tensors are small, and another worker has the other core. Each assert that holds
# is put into words, tensors and all: only their beginnings.
torch.set_num_threads(1)
torch.set_printoptions(threshold=8, edgeitems=1)


def pytest_configure(config: pytest.Config) -> None:
    """Memcheck without a GPU shows nothing; with one, it is slow."""
    if not poison.under_memcheck():
        return
    if not torch.cuda.is_available():
        raise pytest.UsageError(
            "PYTORCH_NO_CUDA_MEMORY_CACHING is set, as make memcheck does, but torch "
            "sees no GPU: there is none, or compute-sanitizer does not support it"
        )
    settings.load_profile("thin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under memcheck, a few cases of each test."""
    if poison.under_memcheck():
        items[:] = thinned(items)


@pytest.fixture(scope="session")
def device() -> str:
    """Where the kernels run: "cuda", or "cpu" under the interpreter."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[poison.Poison]:
    """torch.empty and its kin give NaN between guards; touching a guard fails."""
    with pytest.MonkeyPatch.context() as patch:
        watch = poison.Poison()
        watch.install(patch)
        yield watch
    broken = watch.check()
    assert not broken, "\n".join(broken)


@pytest.fixture(autouse=True)
def in_bounds() -> Iterator[Bounds | None]:
    """On the interpreter, an access outside a launch's tensors raises OutOfBounds."""
    if not triton.knobs.runtime.interpret:
        yield None
        return
    with replaced_once(), pytest.MonkeyPatch.context() as patch:
        bounds = Bounds()
        bounds.install(patch)
        yield bounds


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked `large` take turns, whatever process they run in.

    Under memcheck a turn ends with its process: compute-sanitizer keeps the memory.
    """
    if not (request.node.get_closest_marker("large") and torch.cuda.is_available()):
        yield
        return
    turn = os.open(Path(tempfile.gettempdir(), "verified-docs-large"), os.O_CREAT)
    fcntl.flock(turn, fcntl.LOCK_EX)
    yield
    torch.cuda.empty_cache()
    if not poison.under_memcheck():
        os.close(turn)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Turn a test marked leaves_tensors round: it must be caught."""
    if not pyfuncitem.get_closest_marker("leaves_tensors"):
        return (yield)
    watch, bounds = pyfuncitem.funcargs["poisoned"], pyfuncitem.funcargs["in_bounds"]
    try:
        result = yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    except OutOfBounds:
        return True
    except torch.AcceleratorError:
        if not poison.under_memcheck():
            raise
        return True
    broken = watch.check().copy()
    watch.broken.clear()
    violations = bounds.violations if bounds else []
    assert broken or violations, "the kernel was not seen to leave its tensors"
    return result


def pytest_assertion_pass() -> None:
    """A test whose assert held has checked something."""
    plugin.checked()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
