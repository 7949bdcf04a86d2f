"""Nothing is wrong with a demo, as far as three sanitizers see.

Racecheck, of compute-sanitizer, looks for races in shared memory, its synccheck for
barriers that are misused, and Triton's own consan at the mbarriers of kernels in Gluon.
racing.py shows that a race is seen. What each demo passed is recorded.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
import triton

from tests.memcheck import racecheck
from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.evidence import machine, manifest, records
from verified_docs.evidence.gpu import AT_ONCE
from verified_docs.evidence.records import Entry

ROOT = Path(__file__).parents[2]
RACING = Path(__file__).with_name("racing.py")
OWN = racecheck.of_snippets(ROOT) | racecheck.dispatch(RACING)
KERNEL = re.compile(r"^@(?:triton|gluon)\.jit", re.MULTILINE)
DEMOS = [
    name
    for name in layout.names(ROOT)
    if KERNEL.search((ROOT / layout.snippet_file(name)).read_text(encoding="utf-8"))
]

GLUON = [name for name in DEMOS if snippets.load(ROOT, name).gpu_only]
# With what consan adds to it, the assembler does not end within twenty minutes.
TOO_LONG = {"hopper/gluon_backward.py"}
WATCHED = [name for name in GLUON if name not in TOO_LONG]
TOOLS = {"racecheck": DEMOS, "synccheck": DEMOS, "consan": WATCHED}
OLD = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7)
FALSE_ALARMS = (
    {"consan": "before Triton 3.7 it takes each load for an arrival"}
    if OLD
    else {"racecheck": "from Triton 3.7 on it sees what TMA writes, and no mbarrier"}
)
SANITIZER = ["compute-sanitizer", "--tool"]
SECONDS = 1200  # the assembler needs minutes for what consan adds to a kernel

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available()
    or torch.cuda.get_device_capability()[0] != 9  # Gluon's kernels run nowhere else
    or not shutil.which("compute-sanitizer"),
    reason="needs a Hopper GPU and compute-sanitizer",
)


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[str, dict[str, bool]]]:
    """By demo, whether it passed under each sanitizer; a record keeps it at the end."""
    found: dict[str, dict[str, bool]] = {name: {} for name in DEMOS}
    yield found
    facts = machine.facts(ROOT)
    run = machine.run_name(facts)
    entries = {
        name: entry(run, name, passed) for name, passed in found.items() if passed
    }
    path = ROOT / layout.RECORDS / layout.slug(facts["gpu"]) / layout.SANITIZED
    records.merge(path, {run: facts}, entries, ROOT)


def entry(run: str, name: str, passed: dict[str, bool]) -> Entry:
    """What a record keeps of a demo: the sanitizers that it passed are its output."""
    good, bad = ([t for t in passed if passed[t] is how] for how in (True, False))
    return Entry(
        run=run,
        state="failed" if bad else "passed",
        failed=bad,
        cases=len(good),
        skipped={},
        errors={},
        no_accuracy="a sanitizer compares no numbers",
        output=", ".join(good),
        manifest=records.hashes(ROOT, manifest.beside(ROOT, name)),
    )


def sanitized(tool: str, module: str) -> str:
    """What a module and a sanitizer tell, and at the end how the module ended."""
    own = ["tests.memcheck.consan"] if tool == "consan" else []
    command = [sys.executable, "-m", *own, module]
    try:
        run = subprocess.run(
            command if own else [*SANITIZER, tool, *command],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        return str(error)
    return f"{run.stdout}\nended with {run.returncode}"


def wrong(tool: str, module: str) -> str:
    """What a sanitizer has against a module, or ""."""
    told = sanitized(tool, module)
    well = told.endswith("ended with 0")
    if tool == "synccheck":
        well &= "ERROR SUMMARY: 0 errors" in told
    if tool != "racecheck":
        return "" if well else told
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


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_wrong_with_a_demo(tool: str, seen: dict[str, dict[str, bool]]):
    if tool in FALSE_ALARMS:
        pytest.skip(FALSE_ALARMS[tool])
    demos = TOOLS[tool]
    modules = map(layout.module, demos)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = dict(zip(demos, pool.map(partial(wrong, tool), modules), strict=True))
    for demo, text in told.items():
        seen[demo][tool] = not text
    found = [f"{demo}: {text}" for demo, text in told.items() if text]
    assert not found, "\n\n".join(found)
