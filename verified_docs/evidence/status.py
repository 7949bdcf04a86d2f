"""What is known of the published code: snippets, records, and how fresh they are."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.code.sections import Section
from verified_docs.evidence import manifest, records
from verified_docs.evidence.records import Benchmark, Entry, Facts, State, Verification


def short(gpu: str) -> str:
    """A GPU's name in running text: `NVIDIA H100 80GB HBM3` -> `H100`."""
    return gpu.removeprefix("NVIDIA ").partition(" ")[0]


@dataclass(frozen=True)
class Run:
    """What one machine showed of one snippet."""

    folder: str  # of its records
    facts: Facts  # where and when it ran, of which commit
    entry: Entry  # what the record holds
    state: State  # what that says of the snippet as it is now
    changed: list[str]  # the files that are not what they were, which make it stale
    memchecked: int = 0  # cases that passed under memcheck, of the same files
    sanitized: str = ""  # the other sanitizers that their demo passed under

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

    What that GPU lacks, or ran before files changed, is quoted of another GPU that has
    it of the files as they are now. Everything is read once. The properties raise
    RecordError.
    """

    root: Path
    gpu: str = ""
    _status: dict[str, Status] = field(default_factory=dict, repr=False)
    _stale: dict[Path, set[str]] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def verification(self) -> dict[str, Verification]:
        """What was verified on each GPU, by the folder of its records."""
        files = layout.verification_files(self.root)
        return {path.parent.name: records.load(path) for path in files}

    @functools.cached_property
    def memchecks(self) -> dict[str, Verification]:
        """What ran under memcheck on each GPU that has verified something."""
        return self._beside(layout.MEMCHECK)

    @functools.cached_property
    def sanitized(self) -> dict[str, Verification]:
        """Which other sanitizers the demos passed under, on each of these GPUs."""
        return self._beside(layout.SANITIZED)

    @functools.cached_property
    def benchmarks(self) -> dict[str, dict[str, Benchmark]]:
        """What was timed on each GPU, by part."""
        found: dict[str, dict[str, Benchmark]] = {}
        for path in layout.benchmark_files(self.root):
            timed = found.setdefault(path.parent.name, {})
            timed[path.stem] = records.load_benchmark(path)
        return found

    @functools.cached_property
    def caught(self) -> int:
        """How many planted bugs the tests are known to catch, as all files are now."""
        files = layout.verdict_files(self.root)
        shape = {"snippets": dict[str, dict[str, object]]}
        read = [records.read(path, shape)["snippets"] for path in files]
        return sum(
            len(judged["caught"])
            for found in read
            for judged in found.values()
            if not records.changed(self.root, judged["manifest"])
        )

    @functools.cached_property
    def interpreter(self) -> Verification:
        """What was verified on a CPU."""
        return records.load(self.root / layout.verification_file())

    @functools.cached_property
    def quoted(self) -> str:
        """The folder of the GPU that prose and plots quote first."""
        return self.gpu or min([*self.verification, *self.benchmarks], default="")

    def benchmark(self, name: str, part: str = "") -> Benchmark | None:
        """The record to quote, for its list `part` if one is named."""
        folders = sorted(self.benchmarks, key=lambda folder: folder != self.quoted)
        there = [b for f in folders if (b := self.benchmarks[f].get(name))]
        having = [each for each in there if isinstance(each.data.get(part), list)]
        holds = [b for b in having if not self.outdated(b, part, b.data[part])]
        return next(iter(holds or having or there), None)

    def stale(self, benchmark: Benchmark) -> set[str]:
        """The files that changed since a benchmark ran."""
        if benchmark.path not in self._stale:
            changed = records.changed(self.root, benchmark.manifest)
            self._stale[benchmark.path] = {*changed}
        return self._stale[benchmark.path]

    def outdated(
        self, benchmark: Benchmark, part: str, shown: Iterable[Facts]
    ) -> set[str]:
        """Those of them that what is shown of a list of it depends on.

        They are the files of its kernels, how the list is measured, and what these
        import; also one of the first two that has no hash. Of no list, "", only what
        all lists share counts.
        """
        kernels = {str(each.get("of", each.get("kernel"))) for each in shown}
        used = {layout.snippet_file(name) for name in kernels}
        lists = filter(None, (part, "__init__"))
        used |= {layout.benchmark_list(benchmark.path.stem, each) for each in lists}
        known = benchmark.manifest
        found = {f for f in used if f not in known and (self.root / f).is_file()}
        if self.stale(benchmark):
            used |= manifest.reached(self.root, used)
            found |= {
                file
                for file in self.stale(benchmark)
                if file in used or PurePosixPath(file).parent.name == "benchmarks"
            }
        return found

    def quote(self, name: str) -> Run | None:
        """The run of a snippet to quote: the latest of one GPU. Raises SnippetError."""
        return max(
            self.status(name).runs,
            key=lambda run: (run.fresh, run.folder == self.quoted, run.entry.run),
            default=None,
        )

    def status(self, name: str) -> Status:
        """The state of a snippet. Raises SnippetError and RecordError."""
        if name not in self._status:
            self._status[name] = self._judge(snippets.load(self.root, name))
        return self._status[name]

    def resolve(self, reference: str) -> tuple[snippets.Snippet, Section]:
        """What "softmax/online.py:kernel" or "softmax/online.py" refers to."""
        name, _, section = reference.partition(":")
        snippet = self.status(name).snippet
        return snippet, snippet.section(section)

    def _judge(self, snippet: snippets.Snippet) -> Status:
        runs = [
            run
            for folder, found in self.verification.items()
            for run in self._runs(folder, found, snippet.name)
        ]
        tried = {run.folder for run in runs}
        others = (v for f, v in self.verification.items() if f not in tried)
        untried = [str(facts["gpu"]) for v in others for facts in v.runs.values()]
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
        return Status(snippet, str(state), runs, [*dict.fromkeys(untried)], local)

    def _beside(self, name: str) -> dict[str, Verification]:
        folders = (path.parent for path in layout.verification_files(self.root))
        return {each.name: records.load(each / name) for each in folders}

    def _runs(self, folder: str, verification: Verification, name: str) -> list[Run]:
        found = []
        for key, entry in verification.snippets.get(name, {}).items():
            changed = entry.changed(self.root, name)
            facts, state = verification.runs[entry.run], entry.judge(changed)
            thin = self._fresh(self.memchecks, folder, name, key)
            demo = self._fresh(self.sanitized, folder, name, key)
            cases, tools = thin.cases if thin else 0, demo.output if demo else ""
            found.append(Run(folder, facts, entry, state, changed, cases, tools))
        return found

    def _fresh(
        self, found: dict[str, Verification], folder: str, name: str, key: str
    ) -> Entry | None:
        """The entry of the same versions, if it shows the files as they are now."""
        known = found[folder].snippets if folder in found else {}
        entry = known.get(name, {}).get(key)
        holds = entry and entry.judge(entry.changed(self.root, name)) is State.FRESH
        return entry if holds else None
