"""The fixtures of tests/snippets at work, on a snippet that leaves its tensors."""

import shutil

import pytest
import triton

from tests.machinery.repository import ROOT, Repository
from tests.snippets import conftest
from verified_docs import layout
from verified_docs.evidence import records

SNIPPET = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 1.0, offs < n)

def ones(n, more=0):
    y = torch.empty(n)
    kernel[(1,)](y, n + more, BLOCK=16)
    return y

print("ran")
"""
TESTS = """
import pytest
import torch
from hypothesis import given, settings, strategies as st
from snippets.part import wrong_ones as ones
from tests.harness.accuracy import check_accuracy
from tests.harness.bounds import OutOfBounds
from tests.harness.poison import guarded

@pytest.mark.leaves_tensors
def test_marked_and_caught():
    ones.ones(9, 1)

@pytest.mark.leaves_tensors
def test_marked_but_sound():
    ones.ones(9)

def test_unmarked():
    ones.ones(9, 1)

def test_expected():
    with pytest.raises(OutOfBounds):
        ones.ones(9, 1)

def test_guard():
    y = torch.empty(4)
    torch.zeros(0).set_(y.untyped_storage(), y.storage_offset() + 4, (1,)).zero_()
    assert y.isnan().all()

def test_guard_before_is_whole():
    assert torch.empty(4).isnan().all()

@given(n=st.integers(1, 9))
def test_property(device, n):
    one = guarded(torch.ones(n, device=device))
    check_accuracy(ones.ones(n), one.double(), one)

def test_wrong():
    check_accuracy(ones.ones(2), torch.zeros(2).double(), torch.zeros(2))

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
    tree.snippet("part/wrong_ones.py", SNIPPET, TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = pytester.runpytest_subprocess("--rootdir=.", "-rA", "tests/snippets")
    run.assert_outcomes(passed=6, failed=3, errors=1, skipped=1)
    passed = "marked_and_caught expected guard guard_before_is_whole property"
    for name in passed.split():
        run.stdout.fnmatch_lines_random(f"PASSED *::test_{name}")
    for line in (
        "PASSED *::demo",
        "FAILED *::test_marked_but_sound *",
        "*: the kernel was not seen to leave its tensors",
        "FAILED *::test_unmarked *",
        "*OutOfBounds: kernel stores 1 of 10 elements outside *y_ptr +9 elements*",
        "FAILED *::test_wrong *",
        "*error 1.00e+00 above the bound *",
        "ERROR *::test_guard *",
        "*1 elements written outside torch.float32 (4,) allocated at *",
    ):
        run.stdout.fnmatch_lines_random(line)
    seen = records.load(tree.root / layout.verification_file()).snippets
    assert [entry.state for entry in seen["part/wrong_ones.py"].values()] == ["failed"]


def test_memcheck_without_a_gpu_is_refused(monkeypatch, pytestconfig):
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    with pytest.raises(pytest.UsageError, match="torch sees no GPU"):
        conftest.pytest_configure(pytestconfig)
