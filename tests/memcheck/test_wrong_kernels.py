"""compute-sanitizer sees the kernels that leave their tensors on purpose.

`make memcheck` shows that the others do not. This shows that it would have seen it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from verified_docs.evidence.gpu import ALONE, SANITIZER

ROOT = Path(__file__).parents[2]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def leaving() -> list[str]:
    """The tests marked leaves_tensors."""
    collect = [*PYTEST, "--collect-only", "-m", "leaves_tensors", "tests/snippets"]
    run = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if "::" in line]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("nodeid", leaving())


@pytest.mark.skipif(
    not torch.cuda.is_available() or not shutil.which("compute-sanitizer"),
    reason="needs a GPU and compute-sanitizer",
)
def test_is_caught(nodeid: str) -> None:
    run = subprocess.run(
        [*SANITIZER, *PYTEST, nodeid],
        cwd=ROOT,
        env=os.environ | ALONE,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 9, run.stdout + run.stderr
    assert "Invalid __global__" in run.stdout, run.stdout + run.stderr
