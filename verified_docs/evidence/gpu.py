"""`make gpu`: run the tests of snippets on a GPU, and record what they show.

Each module has a process of its own, several at a time on each GPU, and writes into a
record that is empty at first. It ends well only if every snippet that was due is in
there, passed. What it holds then joins the record in records/; an interrupted run
leaves that as it was.

`make memcheck` does the same with a few cases of each test under compute-sanitizer,
without the demo and without the kernels that leave their tensors on purpose.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from verified_docs import layout
from verified_docs.evidence import machine, manifest, records
from verified_docs.evidence.records import Entry, Facts, State

Places = SimpleQueue[dict[str, str]]  # of the environment of a process
AT_ONCE = 16  # on each GPU, at most
EACH = 8 * 2**10  # MiB of its memory for each of them
SECONDS = 1800  # for one module
SANITIZER = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9"]
# PyTorch's own kernels, of C++ and with its mangled names, take most of the time.
SANITIZER += ["--kernel-name-exclude", "kernel_substring=_Z"]
# Without a cache each tensor has memory of its own, whose ends the sanitizer knows.
ALONE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def main(
    root: Path,
    everything: bool,
    folder: str,
    wanted: Sequence[str] = (),
    memcheck: bool = False,
) -> int:
    """Run what is stale, or everything; the record goes to `folder`/<gpu>.

    `wanted` are the parts, such as softmax, and the snippets, such as softmax/online,
    to look at; all if there are none. Returns 0 if all that was due passed. Raises
    RecordError.
    """
    facts = machine.facts(root)
    if "gpu" not in facts:
        print("make gpu: no GPU is seen here, or TRITON_INTERPRET is set")
        return 1
    run, key = machine.run_name(facts), records.versions(facts)
    own = layout.MEMCHECK if memcheck else layout.VERIFICATION
    record = Path(layout.slug(facts["gpu"]), own)
    known = records.load(root / layout.RECORDS / record)
    found = layout.names(root)
    names = {name: {layout.part(name), name.rpartition(".")[0]} for name in found}
    if lost := set(wanted) - set().union(*names.values()):
        print(f"make gpu: there is no part or snippet {', '.join(sorted(lost))}")
        return 1
    due = [
        name
        for name, called in names.items()
        if (not wanted or called & {*wanted})
        and (everything or _judge(root, name, known.snippets.get(name, {}).get(key)))
    ]
    # The longest first, so that none is left to run alone at the end.
    sizes = {
        n: sum(e.cases for e in them.values()) for n, them in known.snippets.items()
    }
    due.sort(key=lambda name: -sizes.get(name, 0))
    with tempfile.TemporaryDirectory() as empty:
        file = Path(empty, layout.VERIFICATION)
        records.save(records.Verification(file, {run: facts}))
        places = _places(facts, Path(empty))
        with ThreadPoolExecutor(places.qsize()) as pool:
            try:
                test = partial(_test, root, file, places, memcheck)
                ended = list(pool.map(test, due))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        seen = records.load(file).snippets
    entries = {
        name: _entry(root, name, run, seen.get(name, {}).get(key), end)
        for name, (end, _) in zip(due, ended, strict=True)
        if (root / layout.test_file(name)).is_file()
    }
    target = root / folder / record
    if not target.exists():
        records.save(replace(known, path=target))
    records.merge(target, {run: facts}, entries, root)
    wrong = 0
    for name, (_, seconds) in zip(due, ended, strict=True):
        reason = _judge(root, name, entries.get(name))
        wrong += bool(reason)
        told = reason or f"{entries[name].cases} cases passed"
        print(f"{name}: {told} ({seconds:.0f} s)")
    print(f"{target}: {len(due) - wrong} of {len(due)} snippets that were due passed")
    return 1 if wrong else 0


def _places(facts: Facts, folder: Path) -> Places:
    """For each module that may run at a time, what puts it on one of the GPUs.

    They are alike: all have the name of the first one. The tests that take much memory
    wait for each other by a file in the folder for temporary ones, so each GPU has its
    own.
    """
    memory = machine.nvidia_smi({"MiB": "memory.total"}).get("MiB", "")
    room = int(memory.split()[0]) // EACH if memory else AT_ONCE
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(
        str(index) for index in range(len(facts["gpus"]))
    )
    devices = [
        device
        for device, gpu in zip(visible.split(","), facts["gpus"], strict=False)
        if gpu == facts["gpu"]
    ]
    for device in devices:
        (folder / device).mkdir()
    places: Places = SimpleQueue()
    for _ in range(max(1, min(room, AT_ONCE))):
        for device in devices:  # In turn, so that few modules have all the GPUs.
            own = str(folder / device)
            places.put({"CUDA_VISIBLE_DEVICES": device, "TMPDIR": own})
    return places


def _test(
    root: Path, file: Path, places: Places, memcheck: bool, name: str
) -> tuple[str, float]:
    """Run the tests of a snippet; what they tell is shown if they fail.

    Returns how they failed, or "", and the seconds that they took.
    """
    place = places.get()
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-c", layout.SETTINGS, layout.test_file(name), "--record", str(file)]
    own = {key: each for key, each in os.environ.items() if "PYTEST" not in key}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # None that happens to be installed.
    own |= place
    if memcheck:
        command, own = [*SANITIZER, *command, "--memcheck"], own | ALONE
    try:
        run = subprocess.run(
            command,
            cwd=root,
            env=own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it ran longer than {SECONDS} s", SECONDS
    finally:
        places.put(place)
    if run.returncode:
        print(run.stdout.decode(errors="replace"), flush=True)
    end = f"pytest ended with status {run.returncode}" if run.returncode else ""
    return end, time.monotonic() - began


def _entry(root: Path, name: str, run: str, seen: Entry | None, end: str) -> Entry:
    """What was recorded; a failure where the tests did not run to a good end."""
    if seen and (not end or seen.failed):
        return seen
    files = records.hashes(root, manifest.beside(root, name))
    entry = seen or Entry(run, "failed", [], 0, {}, {}, "", "", files)
    return replace(entry, state="failed", failed=[end or "its tests did not run"])


def _judge(root: Path, name: str, entry: Entry | None) -> str:
    """Why a snippet is not shown to work by an entry, or ""."""
    if entry is None:
        return "not run"
    changed = entry.changed(root, name)
    state = entry.judge(changed)
    why = ", ".join(changed or entry.failed or list(entry.skipped))
    return "" if state is State.FRESH else f"{state}: {why}"
