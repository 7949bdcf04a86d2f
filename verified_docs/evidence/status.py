"""What is known of the published code: snippets, records, and how fresh they are."""

import functools
from dataclasses import dataclass, field
from pathlib import Path

from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.code.sections import Section
from verified_docs.evidence import records
from verified_docs.evidence.records import (
    Benchmark,
    Entry,
    Facts,
    RecordError,
    State,
    Verification,
)


@dataclass(frozen=True)
class Run:
    """What one machine showed of one snippet.

    Attributes:
        folder: of its records.
        facts: where and when it ran; its commit and the name of its run are there.
        entry: what the record holds.
        state: what that says of the snippet as it is now.
        changed: the files that are not what they were, which make it stale.
    """

    folder: str
    facts: Facts
    entry: Entry
    state: State
    changed: list[str]

    @property
    def fresh(self) -> bool:
        """Whether it shows that the snippet as it is now works."""
        return self.state is State.FRESH

    @property
    def gpu(self) -> str:
        """The GPU by its own name; "" for the interpreter."""
        return str(self.facts.get("gpu", ""))


@dataclass(frozen=True)
class Status:
    """The state of a snippet.

    `interpreter` is None for a file that only a GPU runs: there, its tests see little.
    `state` is "verified", "failed", "skipped too much", "stale", "interpreter" or
    "unverified". `runs` are those on GPUs, for each GPU and its versions; `untried` are
    the GPUs that have a record, but none of this snippet.
    """

    snippet: snippets.Snippet
    state: str
    runs: list[Run]
    untried: list[str]
    interpreter: Run | None

    @property
    def fresh(self) -> list[Run]:
        """The runs that show the bytes on the page."""
        return [run for run in self.runs if run.fresh]


@dataclass(frozen=True)
class Evidence:
    """The repository below `root`; `gpu` is the folder of the records to quote.

    Everything is read once. The properties raise RecordError.
    """

    root: Path
    gpu: str = ""
    _status: dict[str, Status] = field(default_factory=dict, repr=False)
    _stale: dict[str, list[str]] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def verification(self) -> dict[str, Verification]:
        """What was verified on each GPU."""
        return records.load_all(self.root)

    @functools.cached_property
    def benchmarks(self) -> dict[str, dict[str, Benchmark]]:
        """What was timed on each GPU."""
        return records.load_benchmarks(self.root)

    @functools.cached_property
    def interpreter(self) -> Verification:
        """What was verified on the CPU, on this machine: a cache, so it may be lost."""
        try:
            return records.load(self.root / layout.INTERPRETER)
        except RecordError:
            return Verification(self.root / layout.INTERPRETER)

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

    def stale(self, name: str) -> list[str]:
        """The files that changed since the named benchmark ran, if it has."""
        if name not in self._stale:
            benchmark = self.benchmark(name)
            self._stale[name] = benchmark.stale(self.root) if benchmark else []
        return self._stale[name]

    def quote(self, name: str) -> Run | None:
        """The latest run of a snippet on the quoted GPU."""
        runs = [run for run in self.status(name).runs if run.folder == self.quoted]
        return max(runs, key=lambda run: run.entry.run, default=None)

    def gpu_name(self, folder: str) -> str:
        """What the GPU with this folder of records calls itself."""
        timed = self.benchmarks.get(folder, {}).values()
        verification = self.verification.get(folder)
        tried = verification.runs.values() if verification else ()
        for facts in (*(each.environment for each in timed), *tried):
            return str(facts["gpu"])
        return folder

    def status(self, name: str) -> Status:
        """The state of a snippet. Raises SnippetError and RecordError."""
        if name not in self._status:
            self._status[name] = self._judge(snippets.load(self.root, name))
        return self._status[name]

    def resolve(self, reference: str) -> tuple[snippets.Snippet, Section]:
        """As `snippets.resolve`, of a file that is read once."""
        name, _, section = reference.partition(":")
        snippet = self.status(name).snippet
        return snippet, snippet.section(section)

    def _judge(self, snippet: snippets.Snippet) -> Status:
        runs = [
            run
            for folder, found in self.verification.items()
            for run in self._runs(folder, found, snippet.name)
        ]
        untried = self.verification.keys() - {run.folder for run in runs}
        here = self._runs("interpreter", self.interpreter, snippet.name)
        local = here[0] if here and not snippet.gpu_only else None
        states = {run.state for run in runs}
        if State.FAILED in states:
            state = "failed"
        elif State.FRESH in states:
            state = "verified"
        elif runs:
            state = State.SKIPPED if State.SKIPPED in states else State.STALE
        else:
            state = "interpreter" if local and local.fresh else "unverified"
        names = [self.gpu_name(folder) for folder in sorted(untried)]
        return Status(snippet, str(state), runs, names, local)

    def _runs(self, folder: str, verification: Verification, name: str) -> list[Run]:
        found = []
        for entry in verification.snippets.get(name, {}).values():
            changed = entry.changed(self.root, name)
            facts = verification.runs[entry.run]
            found.append(Run(folder, facts, entry, entry.judge(changed), changed))
        return found
