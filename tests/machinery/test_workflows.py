"""The workflows: who may do what, and what publishing waits for."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.machinery.repository import ROOT

FOLDER = ROOT / ".github/workflows"
FILES = FOLDER.iterdir()
WORKFLOWS = {file.stem: yaml.load(file.read_text(), yaml.BaseLoader) for file in FILES}
JOBS = {
    f"{name}/{key}": job
    for name, workflow in WORKFLOWS.items()
    for key, job in workflow["jobs"].items()
}
MAIN = "github.ref == 'refs/heads/main'"
jobs = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
# What starts each. Whatever runs after a pull request, or beside it, may be of a fork.
STARTED = {
    "gpu": {"workflow_call", "workflow_dispatch"},
    "nightly": {"schedule", "workflow_dispatch"},
    "publish": {"push", "workflow_dispatch"},
    "test": {"pull_request", "workflow_call"},
}
USED = r"\./\.github/workflows/(test|gpu)\.yml|actions/[a-z-]+@[0-9a-f]{40}"
# What a fork may write, and what it may not read.
FOREIGN = re.compile(r"\bsecrets\b|github\.(event\.|head_ref)")


def writes(job: dict[str, Any]) -> bool:
    return "write" in job.get("permissions", {}).values()


@jobs
def test_a_job_runs_pinned_actions_not_for_ever_and_writes_nothing_it_made(job):
    steps = job.get("steps", [])
    for used in filter(None, [job.get("uses"), *(step.get("uses") for step in steps)]):
        assert re.fullmatch(USED, used)
    assert not FOREIGN.search(str(job))
    assert "uses" in job or int(job["timeout-minutes"]) <= 150
    for each in (job, *steps):  # Nothing goes on where something failed.
        assert each.get("if", MAIN) == MAIN
        assert "continue-on-error" not in each
    for step in steps:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"
    if writes(job):  # It runs no code that was installed, and only for the main branch.
        assert not any("run" in step for step in steps)
        assert job["if"] == MAIN


def test_by_default_a_workflow_only_reads_and_no_pull_request_reaches_the_gpu():
    assert {name: {*workflow["on"]} for name, workflow in WORKFLOWS.items()} == STARTED
    assert WORKFLOWS["publish"]["on"]["push"] == {"branches": ["main"]}
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {"contents": "read"}
    (test,) = WORKFLOWS["test"]["jobs"].values()
    assert "uses" not in test
    hosts = {name: job["runs-on"] for name, job in JOBS.items() if "uses" not in job}
    assert hosts.pop("gpu/gpu")["group"]
    assert {*hosts.values()} == {"ubuntu-24.04"}


# The jobs of publishing, and those that each waits for.
NEEDS = {
    "build": ["test", "gpu"],
    "check": "build",
    "attest": "check",
    "deploy": "attest",
}


def test_publishing_waits_for_both_tests_and_the_check():
    publish = WORKFLOWS["publish"]["jobs"]
    assert [name for name in publish if writes(publish[name])] == ["attest", "deploy"]
    needed = {name: job["needs"] for name, job in publish.items() if "needs" in job}
    assert needed == NEEDS
    for name in ("test", "gpu"):
        assert publish[name]["uses"] == f"./.github/workflows/{name}.yml"
    assert WORKFLOWS["publish"]["concurrency"]["cancel-in-progress"] == "false"


def test_only_the_main_branch_reaches_the_gpu_in_a_pinned_container():
    gpu = JOBS["gpu/gpu"]
    assert gpu["if"] == MAIN
    assert gpu["container"]["image"] == "${{ vars.GPU_IMAGE }}"
    assert not any("PYTEST_ADDOPTS" in str(part) for part in gpu.values())
    # The GPU is the one whose figures the site quotes.
    (quoted,) = [step["run"] for step in gpu["steps"] if "test -f" in str(step)]
    folder = re.search(r"\$\((.*)\)/", quoted)[1]
    assert subprocess.check_output(folder, shell=True, cwd=ROOT) == b"nvidia-h200\n"


# What is in steps of a job, in this order: records are those of that run, the site is
# built with them and judged in another job, and it is what is attested.
RECORDS = "'name': 'records', 'path': 'records/'"
STEPS = {
    "gpu/gpu": [
        "@sha256:",
        "'make gpu ALL=1 RECORDS=run'",
        "test -f",
        "'name': 'records', 'path': 'run/', 'if-no-files-found': 'error'",
    ],
    "publish/build": [RECORDS, "'make site'"],
    "publish/check": [RECORDS, "'make check ARGS=\"--require gpu\"'"],
    "publish/attest": [RECORDS, r"'records/**/*.json\npages/artifact.tar"],
    "test/test": ["{'run': 'make test'}"],
    "nightly/everything": ["'make test ALL=1'"],
}


@pytest.mark.parametrize("job", STEPS)
def test_the_order_of_steps(job):
    told = [str(step) for step in JOBS[job]["steps"]]
    places = [[n for n, it in enumerate(told) if words in it] for words in STEPS[job]]
    assert all(len(found) == 1 for found in places)
    assert places == sorted(places)
