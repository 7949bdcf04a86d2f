"""Records the replays of a snippet, and holds the record against what it runs now."""

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import torch
import triton
from triton.runtime.interpreter import InterpretedFunction

from tests.replays import Replay, Tensors
from tests.replays.sentences import StoryError
from tests.replays.story import Story
from tests.replays.watch import Watch
from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.evidence import records
from verified_docs.evidence.manifest import reached

FORMAT = 1
LARGEST = 20_000  # bytes of a record, compressed


def described(snippet: str) -> Replay:
    """The description of a snippet's replays."""
    name = layout.replay_file(snippet).removesuffix(".py").replace("/", ".")
    return importlib.import_module(name).REPLAY


def record(root: Path, name: str) -> tuple[dict[str, Any], dict[str, Tensors]]:
    """The record of a snippet as it is now, and the outputs of each run."""
    replay, snippet = described(name), snippets.load(root, name)
    outputs, runs = {}, []
    for each, run in replay.runs.items():
        watch = Watch(snippet.path, functions(name, replay), replay.names, run.inputs)
        with watch.watching():
            outputs[each] = (run.call or replay.call)(**run.inputs)
        shapes = {each.show.name: each.shape(**run.inputs) for each in replay.maps}
        symbols = replay.symbols(**run.inputs)
        formulas = {**replay.formulas, **run.formulas}
        parts = [[*map(list, each.items())] for each in run.parts]
        runs.append(
            Story(replay, snippet, watch, shapes).record(run.title, each)
            | {"formula": {k: formula(v, symbols) for k, v in formulas.items()}}
            | ({"parts": parts} if parts else {})
        )
    for show in replay.state:
        if not any(show.name == each["name"] for run in runs for each in run["state"]):
            raise StoryError(f"no line sets {show.name}")
    return {
        "format": FORMAT,
        "snippet": name,
        "manifest": manifest(root, name),
        "versions": {"torch": torch.__version__, "triton": triton.__version__},
        "unit": replay.unit,
        **({"sizes": dict(replay.sizes)} if replay.sizes else {}),
        **({"compare": {"snippet": replay.beside}} if replay.beside else {}),
        "runs": runs,
    }, outputs


def functions(snippet: str, replay: Replay) -> set[str]:
    """The functions whose lines are shown: the kernels, and what they call."""
    name = layout.snippet_file(snippet).removesuffix(".py").replace("/", ".")
    module = vars(importlib.import_module(name))
    kernels = {n for n, x in module.items() if isinstance(x, InterpretedFunction)}
    return {*kernels, *replay.functions}


def formula(text: str, symbols: Any) -> dict[str, Any]:
    """A sum of products, and what it gives."""
    value = eval(text.replace("·", "*"), {"__builtins__": {}}, dict(symbols))
    return {"text": text, "value": value}


def manifest(root: Path, snippet: str) -> dict[str, str]:
    """The hashes of all that a record rests on."""
    first = (f"{layout.REPLAYS}/record.py", layout.replay_file(snippet))
    return records.hashes(root, reached(root, first))


def read(root: Path, snippet: str) -> dict[str, Any]:
    """What is recorded; {} if nothing is."""
    path = root / layout.replay_record(snippet)
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def text(made: dict[str, Any]) -> str:
    """A record as its file has it: a line for each step."""
    whole = {**made, "runs": []}
    runs = [
        _object({**run, "steps": []}).replace(
            '"steps":[]', '"steps":[\n' + ",\n".join(map(_object, run["steps"])) + "\n]"
        )
        for run in made["runs"]
    ]
    shown = _object(whole).replace('"runs":[]', '"runs":[\n' + ",\n".join(runs) + "\n]")
    return shown + "\n"


def _object(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write(root: Path, made: dict[str, Any]) -> None:
    """Write the record down."""
    records.write(root / layout.replay_record(made["snippet"]), text(made))


def compressed(made: dict[str, Any]) -> int:
    """The bytes of a record as a server sends it."""
    return len(gzip.compress(text(made).encode(), mtime=0))
