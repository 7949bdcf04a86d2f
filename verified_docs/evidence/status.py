"""What is known of the published code: snippets, records, and how fresh they are."""

import functools
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from verified_docs.code import snippets
from verified_docs.evidence import records
from verified_docs.evidence.records import (
    Benchmark,
    Entry,
    RecordError,
    State,
    Verification,
)


@dataclass(frozen=True)
class Run:
    """What one machine showed of one snippet. `folder` is that of its records."""

    folder: str
    entry: Entry
    fresh: bool

    @property
    def gpu(self) -> str:
        """The GPU by its own name, else the name of its folder."""
        return self.entry.environment.gpu or self.folder


@dataclass(frozen=True)
class Status:
    """The state of a snippet.

    `state` is "verified", "stale", "interpreter" or "unverified". `runs` are those on
    GPUs, one for each GPU with a record of the snippet; `untried` are the other GPUs.
    """

    snippet: snippets.Snippet
    state: str
    runs: list[Run]
    untried: list[str]
    interpreter: Run | None

    @property
    def fresh(self) -> list[Run]:
        """The runs of the bytes on the page."""
        return [run for run in self.runs if run.fresh]


@dataclass(frozen=True)
class Evidence:
    """The repository below `root`; `gpu` is the folder of the records to quote.

    Everything is read once. The properties raise RecordError.
    """

    root: Path
    gpu: str = ""
    _status: dict[str, Status] = field(default_factory=dict, repr=False)

    @property
    def sources(self) -> Path:
        """The folder of the snippets."""
        return self.root / "snippets"

    @functools.cached_property
    def verification(self) -> dict[str, Verification]:
        """What was verified on each GPU."""
        return dict(sorted(records.load_all(self.root / "records").items()))

    @functools.cached_property
    def benchmarks(self) -> dict[str, dict[str, Benchmark]]:
        """What was timed on each GPU."""
        return records.load_benchmarks(self.root / "records")

    @functools.cached_property
    def interpreter(self) -> Verification:
        """What was verified on the CPU, on this machine."""
        return records.load(self.root / records.INTERPRETER)

    @functools.cached_property
    def quoted(self) -> str:
        """The folder of the GPU that prose and plots quote."""
        known = sorted({*self.verification, *self.benchmarks})
        if not self.gpu and len(known) > 1:
            raise RecordError(
                f"there are records of {', '.join(known)}: set the option gpu to one"
            )
        return self.gpu or next(iter(known), "")

    def benchmark(self, name: str) -> Benchmark | None:
        """The named benchmark of the quoted GPU."""
        return self.benchmarks.get(self.quoted, {}).get(name)

    def data(self, name: str) -> dict[str, Any] | None:
        """The content of a record of the quoted GPU."""
        if name == "verification":
            found = self.verification.get(self.quoted)
            return {"snippets": asdict(found)["snippets"]} if found else None
        benchmark = self.benchmark(name)
        return benchmark.data if benchmark else None

    def gpu_name(self, folder: str) -> str:
        """What the GPU with this folder of records calls itself."""
        for benchmark in self.benchmarks.get(folder, {}).values():
            return benchmark.environment.gpu
        verification = self.verification.get(folder)
        for entry in verification.snippets.values() if verification else ():
            return entry.environment.gpu
        return folder

    def status(self, name: str) -> Status:
        """The state of a snippet. Raises SnippetError and RecordError."""
        if name not in self._status:
            self._status[name] = self._judge(snippets.load(self.sources, name))
        return self._status[name]

    def _judge(self, snippet: snippets.Snippet) -> Status:
        found = {
            folder: self._run(folder, verification, snippet)
            for folder, verification in self.verification.items()
        }
        runs = [run for run in found.values() if run]
        untried = [self.gpu_name(folder) for folder, run in found.items() if not run]
        local = self._run("interpreter", self.interpreter, snippet)
        if any(run.fresh for run in runs):
            state = "verified"
        elif runs:
            state = "stale"
        else:
            state = "interpreter" if local and local.fresh else "unverified"
        return Status(snippet, state, runs, untried, local)

    def _run(
        self, folder: str, verification: Verification, snippet: snippets.Snippet
    ) -> Run | None:
        entry = verification.snippets.get(snippet.name)
        if entry is None:
            return None
        fresh = verification.state(self.root, snippet.name) is State.FRESH
        return Run(folder, entry, fresh)
