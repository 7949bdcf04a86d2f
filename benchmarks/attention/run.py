"""One run of the benchmark: what it has measured, and what went wrong."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks import timing
from benchmarks.attention import kernels
from verified_docs.evidence import records

PARTS = tuple(kernels.NAMES)


class Disagree(Exception):
    """A part cannot join a record that was measured elsewhere, or of other files."""


class Run:
    """The record as it grows; after each shape it is on the disk, marked incomplete."""

    def __init__(
        self, folder: Path, environment: records.Facts, parts: tuple[str, ...]
    ) -> None:
        self.path = folder / "attention.json"
        self.incomplete = folder / "attention.incomplete"
        self.parts = parts
        self.failures: list[str] = []
        self.record: dict[str, Any] = {
            "format": records.FORMAT,
            "environment": environment,
            "manifest": {},
            "peers": kernels.versions(),
            "ceilings": {},
            **{part: [] for part in PARTS},
            "refusals": [],
        }
        if set(parts) != set(PARTS) and self.path.exists():
            self._join(json.loads(self.path.read_text(encoding="utf-8")))
        for part in parts:
            self.record["manifest"] |= hashes(part)

    def _join(self, old: dict[str, Any]) -> None:
        """Take over the parts of the old record that are not measured now."""
        kept = [part for part in PARTS if part not in self.parts and old.get(part)]
        for key in ("environment", "peers"):
            if kept and old[key] != self.record[key]:
                raise Disagree(f"the record has another {key}; measure all parts")
        for part in kept:
            for name, sha256 in hashes(part).items():
                if old["manifest"].get(name) != sha256:
                    raise Disagree(f"{part} was measured of another {name}")
            self.record[part] = old[part]
            self.record["manifest"] |= hashes(part)
        self.record["ceilings"] = old["ceilings"]
        self.record["refusals"] = [r for r in old["refusals"] if r["part"] in kept]

    @contextmanager
    def attempt(self, part: str, kernel: str, peer: bool, **shape: Any) -> Iterator:
        """What the body raises is told and kept, and the run goes on.

        A peer that does not take a shape, or is wrong, refuses; all else is a failure.
        """
        try:
            yield
        except Exception as error:
            broken = torch.OutOfMemoryError, torch.AcceleratorError
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            where = " ".join(f"{key}={value}" for key, value in shape.items())
            if peer and not isinstance(error, broken):
                entry = {"part": part, "kernel": kernel, **shape, "reason": reason}
                self.record["refusals"].append(entry)
                print(f"refused: {part} {kernel} {where}: {reason}", flush=True)
            else:
                self.failures.append(f"{part} {kernel} {where}: {reason}")
                print(f"FAILED: {self.failures[-1]}", flush=True)

    def add(
        self, part: str, entries: list[dict[str, Any]], told: Callable[[Any], str]
    ) -> None:
        """Keep measurements of one shape, and print a line of them."""
        self.record[part] += entries
        self.save(self.incomplete)
        for entry in entries[:1]:
            keys = "head_dim", "seq", "causal", "window", "fill", "batch", "seq_k"
            shape = " ".join(f"{key}={entry[key]}" for key in keys if key in entry)
            line = "  ".join(
                f"{entry['kernel'].removeprefix('attention/')} {told(entry)}"
                for entry in entries
            )
            print(f"{part} {shape}: {line}", flush=True)

    def save(self, path: Path) -> None:
        """Write what there is, and what failed, if anything did."""
        failed = {"failures": self.failures} if self.failures else {}
        timing.write(self.record | failed, path)

    def finish(self) -> int:
        """Write the record if nothing failed. Returns the exit status."""
        if self.failures:
            self.save(self.incomplete)
            print(f"{len(self.failures)} failures:", *self.failures, sep="\n  ")
            print(f"no record; what was measured is in {self.incomplete}")
            return 1
        self.save(self.path)
        self.incomplete.unlink(missing_ok=True)
        print(f"wrote {self.path}")
        return 0


def hashes(part: str) -> dict[str, str]:
    """SHA-256 of the files that a part measures."""
    names = [f"snippets/{kernels.path(name)}" for name in kernels.NAMES[part]]
    return {name: timing.sha256(name) for name in names}


def stop(reason: str) -> int:
    """Say why nothing is measured. Returns the exit status."""
    print(f"benchmarks.attention: {reason}", file=sys.stderr)
    return 1
