"""The machine that something runs on, as facts of a record."""

import functools
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

# What Triton takes for a yes.
INTERPRETED = ("1", "y", "yes", "on", "true")
# By their names in a record: fields of nvidia-smi.
SMI = {
    "driver": "driver_version",
    "power limit": "power.limit",
    "largest SM clock": "clocks.max.sm",
    "largest memory clock": "clocks.max.memory",
}


def gpu_name() -> str | None:
    """The GPU that kernels run on; None under the interpreter."""
    if os.environ.get("TRITON_INTERPRET", "").lower() in INTERPRETED:
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def facts(root: Path) -> dict[str, Any]:
    """Where something runs, now: hardware, versions, date and commit."""
    found: dict[str, Any] = {}
    if gpu := gpu_name():
        import torch

        count = torch.cuda.device_count()
        major, minor = torch.cuda.get_device_capability()
        found = {
            "gpu": gpu,
            "gpus": [torch.cuda.get_device_name(each) for each in range(count)],
            "capability": f"{major}.{minor}",
            "cuda": str(torch.version.cuda),
            **nvidia_smi(SMI),
        }
    installed: dict[str, str] = {}
    for each in metadata.distributions():  # The first on the path is the one imported.
        installed.setdefault(each.name, each.version)
    return {
        **found,
        "torch": installed.get("torch", "unknown"),
        "triton": installed.get("triton", "unknown"),
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **commit(root),
        "packages": [f"{name}=={installed[name]}" for name in sorted(installed)],
    }


def run_name(facts: Mapping[str, str]) -> str:
    """What a run that starts now is called in a record."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ ") + facts["commit"][:12]


def commit(root: Path) -> dict[str, str]:
    """The commit that runs, and whether files differ from it, as far as is known.

    The variable COMMIT tells it where the tree is a copy without its own history. A
    history that is there, perhaps an older one than the files, is asked nevertheless.
    Records are written, so they may differ.
    """
    git, told = ("git", "-C", str(root)), os.environ.get("COMMIT", "")
    found = _output(*git, "rev-parse", "-q", "--verify", f"{told or 'HEAD'}^{{commit}}")
    if not found:
        return {"commit": told or "unknown"}
    files = ".", ":!records"
    new = _output(*git, "ls-files", "--others", "--exclude-standard", "--", *files)
    changes = new or differing(root, found, files)
    return {"commit": found, "dirty": "yes" if changes else "no"}


@functools.cache
def lost(root: Path, commit: str) -> bool:
    """Whether a history that is there, and whole, lacks a commit."""
    git = "git", "-C", str(root), "rev-parse"
    whole = _output(*git, "--is-shallow-repository") == "false"
    return whole and not _output(*git, "-q", "--verify", f"{commit}^{{commit}}")


def differing(root: Path, commit: str, files: Iterable[str]) -> list[str]:
    """Those of some files that a commit has otherwise; none if it is not known here."""
    diff = "diff", "--name-only", commit, "--", *files
    return _output("git", "-C", str(root), *diff).split()


def nvidia_smi(fields: dict[str, str]) -> dict[str, str]:
    """What nvidia-smi says of the first GPU, by names of ours; less what it lacks."""
    query = f"--query-gpu={','.join(fields.values())}"
    answer = _output("nvidia-smi", query, "--format=csv,noheader")
    values = answer.partition("\n")[0].split(", ") if answer else ()
    told = dict(zip(fields, values, strict=False))
    return {name: value for name, value in told.items() if "N/A" not in value}


def _output(*command: str) -> str:
    """What a command prints; "" where it fails or is not there."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return str(run.stdout).strip()
