"""The fixtures of tests/snippets at work, on a snippet that leaves its tensors."""

import shutil

import pytest
import triton

from tests.machinery.repository import ROOT, Repository
from tests.snippets import conftest
from verified_docs import layout
from verified_docs.evidence import records

NAME = "start/wrong_no_mask.py"
TESTS = """
import pytest
import torch
from hypothesis import given, settings, strategies as st
from snippets.start import wrong_no_mask
from tests.harness.accuracy import check_accuracy
from tests.harness.bounds import OutOfBounds
from tests.harness.poison import guarded

def ones(n):
    x, y, out = torch.ones(n), torch.zeros(n), torch.empty(n)
    wrong_no_mask.add(x, y, out, block=16)
    return out

@pytest.mark.leaves_tensors
def test_marked_and_caught():
    ones(9)

@pytest.mark.leaves_tensors
def test_marked_but_sound():
    ones(16)

def test_unmarked():
    ones(9)

def test_expected():
    with pytest.raises(OutOfBounds):
        ones(9)

def test_guard():
    y = torch.empty(4)
    torch.zeros(0).set_(y.untyped_storage(), y.storage_offset() + 4, (1,)).zero_()
    assert y.isnan().all()

def test_guard_before_is_whole():
    assert torch.empty(4).isnan().all()

@given(n=st.integers(1, 9))
def test_property(device, n):
    one = guarded(torch.ones(16 * n, device=device))
    check_accuracy(ones(16 * n), one.double(), one)

def test_wrong():
    check_accuracy(ones(16), torch.zeros(16).double(), torch.zeros(16))

@pytest.mark.gpu
def test_gpu():
    pass
"""


pytestmark = pytest.mark.skipif(
    not triton.knobs.runtime.interpret, reason="tested without a GPU"
)


def test_what_they_catch_and_what_they_let_through(pytester, monkeypatch):
    tree = Repository(pytester.path, "part")
    shutil.copytree(ROOT / "tests/harness", tree.root / "tests/harness")
    for name in ("pytest.ini", "tests/conftest.py", "tests/snippets/conftest.py"):
        tree.write({name: (ROOT / name).read_bytes(), "tests/__init__.py": ""})
    tree.snippet(NAME, (ROOT / layout.snippet_file(NAME)).read_bytes(), TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = pytester.runpytest_subprocess("--rootdir=.", "-rA", "tests/snippets")
    run.assert_outcomes(passed=6, failed=3, errors=1, skipped=1)
    for line in (  # so that what passed are the others
        "FAILED *::test_marked_but_sound *",
        "*: the kernel was not seen to leave its tensors",
        "FAILED *::test_unmarked *",
        "*OutOfBounds: add_kernel loads 7 of 16 elements outside *x_ptr +9 elements*",
        "FAILED *::test_wrong *",
        "*error 1.00e+00 above the bound *",
        "ERROR *::test_guard *",
        "*1 elements written outside torch.float32 (4,) allocated at *",
    ):
        run.stdout.fnmatch_lines_random(line)
    seen = records.load(tree.root / layout.verification_file()).snippets
    assert [entry.state for entry in seen[NAME].values()] == ["failed"]


def test_memcheck_without_a_gpu_is_refused(monkeypatch, pytestconfig):
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    with pytest.raises(pytest.UsageError, match="torch sees no GPU"):
        conftest.pytest_configure(pytestconfig)
