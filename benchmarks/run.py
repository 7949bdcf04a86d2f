"""One run: it fills lists of a record, and each full list joins the record at once."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import timing
from benchmarks.ceilings import Ceilings
from benchmarks.part import Part, Shape
from verified_docs.evidence import records

ROOT = Path(__file__).resolve().parent.parent
# Lists that differ in one of these do not share a record.
SAME = ("gpu", "driver", "cuda", "torch", "triton", "power limit")
RATES = {"matmul": "flops_per_second", "copy": "bytes_per_second"}
PARTS = "benchmarks/parts/"
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
        for shape in part.shapes():
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
        write(self.record(), self.path)
        print(f"{name}: wrote {self.path}")
        return True

    def measure(self, part: Part, shape: Shape) -> Entries:
        """Check all kernels on one shape; those that are right take turns."""
        trial = part.trial(shape)
        calls: dict[str, list[Any]] = {}
        launches: dict[str, Any] = {}
        for name, make in (trial.own | trial.peers).items():
            with self.attempt(part, shape, name, name in trial.peers):
                made = make()
                turns = made if isinstance(made, list) else [made]
                trial.check(name, turns[-1]())
                if name in trial.own:
                    with timing.launches() as launches[name]:
                        turns[-1]()
                calls[name] = turns
        entries: Entries = []
        with self.attempt(part, shape, "timing", False):
            for name, measured in trial.measure(calls).items():
                facts = vars(shape) | trial.work | trial.facts.get(name, {})
                entries.append({"kernel": name, **facts, **measured})
                if launches.get(name):
                    entries[-1]["launches"] = launches[name]
        return compared(entries, part.against)

    @contextmanager
    def attempt(
        self, part: Part, shape: Shape, kernel: str, peer: bool
    ) -> Iterator[None]:
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
            if not peer or broken:
                self.failures.append(told)
                print(f"FAILED: {told}", flush=True)
            elif not isinstance(error, ModuleNotFoundError):
                facts = {"part": name, "kernel": kernel, **vars(shape)}
                self.refusals.append(facts | {"reason": reason})
                print(f"refused: {told}", flush=True)

    def record(self) -> dict[str, Any]:
        """What was measured now, and those lists on the disk that still hold."""
        old = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {}
        lists, refusals = dict(self.lists), list(self.refusals)
        manifest: dict[str, str] = {}
        for name, part in self.parts.items():
            manifest |= records.hashes(ROOT, files(part, lists[name]))
        for name in [key for key, value in old.items() if isinstance(value, list)]:
            here, there = self.facts, old["environment"]
            same = all(here.get(key) == there.get(key) for key in SAME)
            same &= self.peers == old.get("peers", {})
            needed = sources(old, name, self.path.stem)
            new = name in lists or name == "refusals"
            if not new and same and not records.changed(ROOT, needed):
                lists[name], manifest = old[name], needed | manifest
                refusals += [each for each in old["refusals"] if each["part"] == name]
        ceilings = self.ceilings.facts()
        for name, part in self.parts.items():
            for entry in lists[name] if part.ceiling else ():
                fraction = entry[RATES[part.ceiling]] / ceilings[part.ceiling]
                entry[f"fraction_of_{part.ceiling}"] = fraction
        return {
            "format": records.FORMAT,
            "environment": self.facts | self.ceilings.state(),
            "manifest": dict(sorted(manifest.items())),
            "peers": self.peers,
            "ceilings": ceilings,
            **dict(sorted(lists.items())),
            "refusals": [each for each in refusals if each["part"] in lists],
        }


def compared(entries: Entries, against: dict[str, str]) -> Entries:
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
        for key, kernel in (against | changed).items():
            if kernel in named:
                entry[key] = named[kernel]["seconds"] / entry["seconds"]
    return entries


def files(part: Part, entries: Entries) -> set[str]:
    """What figures depend on: the kernels, and the benchmark as far as it is loaded.

    Of the folders of parts, that is the list itself and what all lists of it share.
    """
    paths = {Path(getattr(m, "__file__", None) or "/") for m in sys.modules.values()}
    below = [path for path in paths if path.is_relative_to(ROOT / "benchmarks")]
    loaded = {path.relative_to(ROOT).as_posix() for path in below}
    return {
        f"{PARTS}{part.name}.py",
        f"{PARTS}{part.name.partition('/')[0]}/__init__.py",
        *(path for path in loaded if not path.startswith(PARTS)),
        *(path for path in kernels(entries) if (ROOT / path).is_file()),
    }


def kernels(entries: Entries) -> set[str]:
    """The files that were timed, or that were changed for it; peers have none."""
    return {f"snippets/{each.get('of', each.get('kernel'))}" for each in entries}


def sources(record: dict[str, Any], name: str, stem: str) -> dict[str, str]:
    """What the figures of one list of a record depend on, with the hashes of then."""
    own = kernels(record[name])
    others = {f"{PARTS}{stem}/{each}.py" for each in record if each != name}
    return {
        path: sha256
        for path, sha256 in record["manifest"].items()
        if path in own or (path.startswith("benchmarks/") and path not in others)
    }


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


def write(record: dict[str, Any], path: Path) -> None:
    """Write JSON as a whole or not at all, a line for each measurement and fact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text(record), encoding="utf-8")
    os.replace(temporary, path)


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
