"""The workflows: who may do what, and what publishing waits for."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"
WORKFLOWS = {
    path.stem: yaml.load(path.read_text(), yaml.BaseLoader)
    for path in FOLDER.glob("*.yml")
}
JOBS = [
    (f"{name}/{key}", job)
    for name, workflow in WORKFLOWS.items()
    for key, job in workflow["jobs"].items()
]
jobs = pytest.mark.parametrize(
    "job", [job for _, job in JOBS], ids=[name for name, _ in JOBS]
)


def writes(job: dict[str, Any]) -> bool:
    return "write" in job.get("permissions", {}).values()


@jobs
def test_actions_are_pinned_by_their_hash(job: dict[str, Any]) -> None:
    for used in [job.get("uses"), *(step.get("uses") for step in job.get("steps", ()))]:
        if used and not used.startswith("./"):
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", used)


@jobs
def test_no_job_keeps_credentials_or_runs_for_ever(job: dict[str, Any]) -> None:
    if "uses" in job:
        return
    assert int(job["timeout-minutes"]) <= 60
    for step in job["steps"]:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


@jobs
def test_what_runs_installed_code_has_no_right_to_write(job: dict[str, Any]) -> None:
    if writes(job):
        assert not any("run" in step for step in job["steps"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_by_default_a_workflow_only_reads(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in WORKFLOWS[name]["on"]


def test_a_pull_request_never_reaches_the_gpu() -> None:
    for name, workflow in WORKFLOWS.items():
        machines = [job.get("runs-on", "") for job in workflow["jobs"].values()]
        called = [job.get("uses", "") for job in workflow["jobs"].values()]
        if any("self-hosted" in m for m in machines) or any("gpu" in c for c in called):
            assert "pull_request" not in workflow["on"], name


def test_publishing_waits_for_both_tests_of_its_own_commit() -> None:
    publish = WORKFLOWS["publish"]["jobs"]
    (deploy,) = [job for job in publish.values() if writes(job)]
    assert deploy["needs"] == "build"
    assert set(publish["build"]["needs"]) == {"test", "gpu"}
    for name in ("test", "gpu"):
        assert publish[name]["uses"] == f"./.github/workflows/{name}.yml"
    assert WORKFLOWS["publish"]["concurrency"]["cancel-in-progress"] == "false"


def test_the_site_is_built_with_the_records_of_that_run() -> None:
    (upload,) = [s for s in steps("gpu", "gpu") if "upload-artifact@" in used(s)]
    build = steps("publish", "build")
    (download,) = [s for s in build if "download-artifact@" in used(s)]
    assert upload["with"]["name"] == download["with"]["name"]
    assert upload["with"]["path"] == download["with"]["path"] == "records/"
    assert upload["with"]["if-no-files-found"] == "error"
    runs = [step.get("run", "") for step in build]
    assert build.index(download) < runs.index("make site")
    assert runs.index("make site") < runs.index('make check ARGS="--require gpu"')


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    return WORKFLOWS[workflow]["jobs"][job]["steps"]


def used(step: dict[str, Any]) -> str:
    return step.get("uses", "")
