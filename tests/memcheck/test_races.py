"""No demo has a race in shared memory that compute-sanitizer's racecheck sees.

Nor does synccheck see a barrier misused. racing.py shows that a race is seen.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.memcheck import racecheck
from verified_docs import layout
from verified_docs.evidence.gpu import AT_ONCE

ROOT = Path(__file__).parents[2]
RACING = Path(__file__).with_name("racing.py")
OWN = racecheck.of_snippets(ROOT) | racecheck.dispatch(RACING)
KERNEL = re.compile(r"^@(?:triton|gluon)\.jit", re.MULTILINE)
DEMOS = [
    layout.module(name)
    for name in layout.names(ROOT)
    if KERNEL.search((ROOT / layout.snippet_file(name)).read_text(encoding="utf-8"))
]

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available()
    or torch.cuda.get_device_capability()[0] != 9  # Gluon's kernels run nowhere else
    or not shutil.which("compute-sanitizer"),
    reason="needs a Hopper GPU and compute-sanitizer",
)


def sanitized(tool: str, module: str) -> str:
    """What a module and compute-sanitizer tell, and at the end how the module ended."""
    try:
        run = subprocess.run(
            ["compute-sanitizer", "--tool", tool, sys.executable, "-m", module],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
        )
    except subprocess.TimeoutExpired as error:
        return str(error)
    return f"{run.stdout}\nended with {run.returncode}"


def wrong(tool: str, module: str) -> str:
    """What a tool has against a module, or ""."""
    told = sanitized(tool, module)
    well = told.endswith("ended with 0")
    if tool == "synccheck":
        return "" if well and "ERROR SUMMARY: 0 errors" in told else told
    try:
        found = racecheck.races(told, OWN)
    except ValueError as error:
        return f"{told}\n{error}"
    return "\n".join(found) if well else told


def test_a_race_is_seen() -> None:
    found = wrong("racecheck", "tests.memcheck.racing")
    lines = RACING.read_text("utf-8").splitlines()
    at = {lines[int(line) - 1] for line in re.findall(r"racing\.py:(\d+)", found)}
    assert len(at) == 2, found
    assert all("tile." in line for line in at), found


@pytest.mark.parametrize("tool", ["racecheck", "synccheck"])
def test_nothing_is_wrong_with_a_demo(tool: str) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = zip(DEMOS, pool.map(partial(wrong, tool), DEMOS), strict=True)
    found = [f"{demo}: {text}" for demo, text in told if text]
    assert not found, "\n\n".join(found)
