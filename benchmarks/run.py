"""One run: it fills lists of a record, and each full list joins the record at once."""

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import timing
from benchmarks.calls import Call
from benchmarks.ceilings import Ceilings
from benchmarks.part import Part, Shape
from verified_docs.evidence import records

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Lists that differ in one of these do not share a record.
SAME = ("gpu", "driver", "cuda", "torch", "triton", "power limit")
RATES = {"matmul": "flops_per_second", "copy": "bytes_per_second"}
FULL = 2**35  # bytes: what is kept of one shape must not take more from the next

Entries = list[dict[str, Any]]


class Run:
    """What is measured of one record, in one go."""

    def __init__(
        self, path: Path, facts: dict[str, Any], peers: dict[str, str]
    ) -> None:
        self.path, self.facts, self.peers = path, facts, peers
        self.ceilings = Ceilings()
        self.parts: dict[str, Part] = {}
        self.lists: dict[str, Entries] = {}
        self.refusals: Entries = []
        self.failures: list[str] = []

    def fill(self, part: Part) -> bool:
        """Measure a list, which joins the record if nothing failed. Returns whether."""
        name = part.name.rpartition("/")[2]
        self.failures, entries = [], []
        for shape in part.shapes:
            self.ceilings.look()
            entries += (found := self.measure(part, shape))
            told = "  ".join(f"{e['kernel']} {tell(e)}" for e in found)
            print(f"{name} {words(shape)}: {told}", flush=True)
            if torch.cuda.is_available() and torch.cuda.memory_reserved() > FULL:
                torch._dynamo.reset()  # what it holds of a shape may be half a GPU
                gc.collect()
                torch.cuda.empty_cache()
        if self.failures:
            print(f"{name} is not recorded: {len(self.failures)} failures")
            return False
        self.parts[name], self.lists[name] = part, entries
        records.write(self.path, text(self.record()))
        print(f"{name}: wrote {self.path}")
        return True

    def measure(self, part: Part, shape: Shape) -> Entries:
        """Check all kernels on one shape; those that are right take turns."""
        timing.ORDER.seed(f"{part.name} {words(shape)}")
        turns = part.inputs(shape)
        calls: dict[str, list[Call]] = {}
        launches: dict[str, Entries] = {}
        for name in part.kernels(shape):
            with self.attempt(part, shape, name):
                made = [part.make(name, inputs) for inputs in turns]
                part.check(name, turns[-1], made[-1]())
                if name in part.own:
                    with timing.launches() as launches[name]:
                        made[-1]()
                calls[name] = made
        entries: Entries = []
        with self.attempt(part, shape, "timing"):
            for name, measured in part.measure(calls).items():
                entry = {"kernel": name, **vars(shape), **part.facts(name, shape)}
                if name in part.own and part.own[name].of != name:
                    entry["of"] = part.own[name].of
                entries.append(entry | measured)
                if launches.get(name):
                    entries[-1]["launches"] = launches[name]
        return compared(entries, part.against)

    @contextmanager
    def attempt(self, part: Part, shape: Shape, kernel: str) -> Iterator[None]:
        """What the body raises is told and kept, and the run goes on.

        A peer that does not take a shape, or is wrong, refuses. One that is not
        installed is left out. All else is a failure.
        """
        try:
            yield
        except Exception as error:
            name = part.name.rpartition("/")[2]
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            told = f"{name} {kernel} {words(shape)}: {reason}"
            broken = isinstance(error, torch.OutOfMemoryError | torch.AcceleratorError)
            if kernel not in part.peers or broken:
                self.failures.append(told)
                print(f"FAILED: {told}", flush=True)
            elif not isinstance(error, ModuleNotFoundError):
                facts = {"part": name, "kernel": kernel, **vars(shape)}
                self.refusals.append(facts | {"reason": reason})
                print(f"refused: {told}", flush=True)

    def record(self) -> dict[str, Any]:
        """What was measured now, and those lists on the disk that still hold."""
        lists, refusals = dict(self.lists), list(self.refusals)
        if self.path.exists():
            old = json.loads(self.path.read_text("utf-8"))
            for name in self.kept(old):
                lists[name] = old[name]
                refusals += [each for each in old["refusals"] if each["part"] == name]
        ceilings = self.ceilings.facts()
        for name, part in self.parts.items():
            for entry in lists[name] if part.ceiling else ():
                fraction = entry[RATES[part.ceiling]] / ceilings[part.ceiling]
                entry[f"fraction_of_{part.ceiling}"] = fraction
        used = set().union(*(self.files(*item) for item in lists.items()))
        return {
            "format": records.FORMAT,
            "environment": self.facts | self.ceilings.state(),
            "manifest": records.hashes(ROOT, used),
            "peers": self.peers,
            "ceilings": ceilings,
            **dict(sorted(lists.items())),
            "refusals": [each for each in refusals if each["part"] in lists],
        }

    def kept(self, old: dict[str, Any]) -> Iterator[str]:
        """The lists of a record that are of this machine and of files as they are."""
        same = (self.facts.get(key) == old["environment"].get(key) for key in SAME)
        if self.peers == old["peers"] and all(same):
            for name in sorted(old.keys() - self.lists.keys() - {"refusals"}):
                if isinstance(old[name], list):
                    now = records.hashes(ROOT, self.files(name, old[name]))
                    if now.items() <= old["manifest"].items():
                        yield name

    def files(self, name: str, entries: Entries) -> set[str]:
        """What the figures of a list depend on: kernels and benchmark.

        Of the folders of parts, that is the list itself and what all lists of it share.
        """
        part = f"benchmarks/parts/{self.path.stem}"
        shared = [f"benchmarks/{path.name}" for path in HERE.glob("*.py")]
        kernels = {entry.get("of", entry["kernel"]) for entry in entries}
        timed = [f"snippets/{kernel}" for kernel in kernels if kernel.endswith(".py")]
        return {*shared, f"{part}/__init__.py", f"{part}/{name}.py", *timed}


def compared(entries: Entries, against: Mapping[str, str]) -> Entries:
    """The measurements of one shape, with speeds, and how they compare."""
    for entry in entries:
        for work in {"flops", "bytes"} & entry.keys() if "seconds" in entry else ():
            entry[f"{work}_per_second"] = entry[work] / entry["seconds"]
    named = {entry["kernel"]: entry for entry in entries}
    for entry in entries:
        if "copy" in named:
            rate = named["copy"]["bytes_per_second"]
            entry["fraction_of_copy"] = entry["bytes_per_second"] / rate
        # What a kernel was made of, where it is a published one that was changed.
        changed = {"times_published": entry["of"]} if "of" in entry else {}
        for key, kernel in {**against, **changed}.items():
            if kernel in named:
                entry[key] = named[kernel]["seconds"] / entry["seconds"]
    return entries


def words(shape: Shape) -> str:
    """A shape in the progress."""
    return " ".join(f"{key}={value}" for key, value in vars(shape).items())


def tell(entry: dict[str, Any]) -> str:
    """A measurement in the progress."""
    if "flops_per_second" in entry:
        return f"{entry['flops_per_second'] / 1e12:.0f} TFLOP/s"
    if "seconds" in entry:
        return f"{entry['seconds'] * 1e6:.4g} us"
    return f"{entry['bytes'] / 1e6:.3g} MB" if "bytes" in entry else ""


def text(record: dict[str, Any]) -> str:
    """JSON in which each measurement and each fact has a line of its own."""
    dumps = partial(json.dumps, ensure_ascii=False)

    def lines(value: Any) -> str:
        if not isinstance(value, dict | list):
            return dumps(value)
        start, *_, end = dumps(value)
        inner = map(dumps, value)
        if isinstance(value, dict):
            inner = (dumps({key: each})[1:-1] for key, each in value.items())
        return start + ",".join(f"\n  {each}" for each in inner) + f"\n {end}"

    items = [f" {dumps(key)}: {lines(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(items) + "\n}\n"
