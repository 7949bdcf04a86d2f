"""The workflows: who may do what, and what publishing waits for."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"
FILES = FOLDER.glob("*.yml")
WORKFLOWS = {file.stem: yaml.load(file.read_text(), yaml.BaseLoader) for file in FILES}
JOBS = {
    f"{name}/{key}": job
    for name, workflow in WORKFLOWS.items()
    for key, job in workflow["jobs"].items()
}
MAIN = "github.ref == 'refs/heads/main'"
jobs = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)


def writes(job: dict[str, Any]) -> bool:
    return "write" in job.get("permissions", {}).values()


@jobs
def test_a_job_runs_pinned_actions_not_for_ever_and_writes_nothing_it_made(job):
    steps = job.get("steps", [])
    for used in filter(None, [job.get("uses"), *(step.get("uses") for step in steps)]):
        assert re.fullmatch(r"\./.*|actions/[a-z-]+@[0-9a-f]{40}", used)
    assert "uses" in job or int(job["timeout-minutes"]) <= 150
    for each in (job, *steps):  # Nothing goes on where something failed.
        assert each.get("if", MAIN) == MAIN
        assert "continue-on-error" not in each
    for step in steps:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"
    if writes(job):  # It runs no code that was installed.
        assert not any("run" in step for step in steps)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_by_default_a_workflow_only_reads_and_no_pull_request_reaches_the_gpu(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow["on"]
    jobs = workflow["jobs"].values()
    where = " ".join(f"{job.get('runs-on')} {job.get('uses')}" for job in jobs)
    if "self-hosted" in where or "gpu" in where:
        assert "pull_request" not in workflow["on"]


def test_publishing_waits_for_both_tests_and_the_check():
    publish = WORKFLOWS["publish"]["jobs"]
    assert [name for name in publish if writes(publish[name])] == ["attest", "deploy"]
    assert publish["deploy"]["needs"] == "attest"
    assert publish["attest"]["needs"] == "check"
    assert publish["check"]["needs"] == "build"
    assert set(publish["build"]["needs"]) == {"test", "gpu"}
    for name in ("test", "gpu"):
        assert publish[name]["uses"] == f"./.github/workflows/{name}.yml"
    assert WORKFLOWS["publish"]["concurrency"]["cancel-in-progress"] == "false"


def test_only_the_main_branch_reaches_the_gpu_in_a_pinned_container():
    gpu = WORKFLOWS["gpu"]["jobs"]["gpu"]
    assert gpu["if"] == MAIN
    assert gpu["runs-on"]["group"]
    assert gpu["container"]["image"] == "${{ vars.GPU_IMAGE }}"
    assert "@sha256:" in gpu["steps"][0]["run"]
    assert not any("PYTEST_ADDOPTS" in str(part) for part in gpu.values())


def test_the_records_are_those_of_that_run_and_of_the_quoted_gpu():
    gpu = steps("gpu", "gpu")
    runs = [step.get("run", "") for step in gpu]
    (upload,) = [step for step in gpu if "upload-artifact@" in used(step)]
    assert "make gpu ALL=1 RECORDS=run" in runs
    assert upload["with"]["path"] == "run/"
    assert upload["with"]["if-no-files-found"] == "error"
    (quoted,) = [run for run in runs if run.startswith("test -f")]
    assert gpu.index(upload) > runs.index(quoted)
    folder = re.search(r"\$\((.*)\)/", quoted)[1]
    there = FOLDER.parents[1]
    assert subprocess.check_output(folder, shell=True, cwd=there) == b"nvidia-h200\n"


def test_the_site_is_built_with_those_records_and_judged_in_another_job():
    for job in ("build", "check"):
        found = steps("publish", job)
        (download,) = [s for s in found if s.get("with", {}).get("name") == "records"]
        assert download["with"]["path"] == "records/"
        last = [step for step in found if "run" in step]
        assert found.index(download) < found.index(last[0])
    assert "make site" in [step.get("run") for step in steps("publish", "build")]
    checked = [step.get("run") for step in steps("publish", "check")]
    assert checked[-1] == 'make check ARGS="--require gpu"'


def test_what_is_attested_is_what_is_published():
    (attested,) = [s for s in steps("publish", "attest") if "attest" in used(s)]
    paths = attested["with"]["subject-path"].split()
    assert paths == ["records/**/*.json", "pages/artifact.tar"]


def test_every_mutant_runs_at_night():
    assert "schedule" in WORKFLOWS["nightly"]["on"]
    assert steps("nightly", "everything")[-1]["run"] == "make test ALL=1"


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    return WORKFLOWS[workflow]["jobs"][job]["steps"]


def used(step: dict[str, Any]) -> str:
    return step.get("uses", "")
