"""Makes the story of a run from what was watched: its steps, as a record has them."""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tests.replays import Map, Replay, Sentence, Show
from tests.replays.sentences import Moment, StoryError, number, typeset
from tests.replays.watch import Access, Line, Locals, Watch, names, span
from verified_docs.code.snippets import Snippet

EACH = "each "
MOVES = "it loads, stores or multiplies"
FRAMES = 3  # key frames before the last
Step = dict[str, Any]


@dataclass
class Story:
    """The steps of one run.

    Args:
        replay: its description.
        snippet: the file.
        watch: what ran.
        maps: the shapes of the matrices that are never stored.
    """

    replay: Replay
    snippet: Snippet
    watch: Watch
    maps: Mapping[str, tuple[int, int]]

    def __post_init__(self) -> None:
        self.shown = {show.name: show for show in self.replay.state}
        self.loads: dict[str, str] = {}
        self.shapes: dict[str, list[int]] = {}

    def record(self, title: str, name: str) -> dict[str, Any]:
        """The run as the record has it."""
        steps, programs = self.steps()
        steps[-1]["say"] += f" {typeset(self.replay.gain)}"
        return {
            "name": name,
            "title": typeset(title),
            "tensors": [
                *map(self.tensor, self.replay.memory),
                *map(self.map, self.replay.maps),
            ],
            "state": [
                self.variable(show)
                for show in self.replay.state
                if show.name in self.shapes
            ],
            "programs": programs,
            "steps": steps,
            "frames": self.frames(steps),
            "totals": self.totals(steps),
        }

    def tensor(self, show: Show) -> dict[str, Any]:
        """One array in memory."""
        if show.name not in self.watch.tensors:
            known = ", ".join(self.watch.tensors)
            raise StoryError(f"no line touches {show.name}; the arrays are {known}")
        now, first = self.watch.tensors[show.name]
        touches = [
            verb
            for line in self.watch.lines
            for verb, accesses in (("read", line.reads), ("written", line.writes))
            if any(access.name == show.name for access in accesses)
        ]
        shape = list(now.shape) or [1]
        if len(shape) > 2:
            shape = [math.prod(shape[:-1]), shape[-1]]
        if len(shape) > 1 and shape[0] == 1:
            del shape[0]
        facts = {"bytes": now.element_size(), "writes": "written" in touches}
        if touches[:1] != ["written"]:
            facts["values"] = flat(first.numpy())
        return shown(show, shape, "memory") | facts

    def map(self, each: Map) -> dict[str, Any]:
        """A matrix that is never stored."""
        return shown(each.show, self.maps[each.show.name], "map") | {"writes": True}

    def variable(self, show: Show) -> dict[str, Any]:
        """One variable on the chip."""
        found = shown(show, self.shapes[show.name], show.level)
        if show.place in self.shapes:
            found["place"] = show.place
        if show.name in self.loads:
            found["loads"] = self.loads[show.name]
        return found

    def frames(self, steps: list[Step]) -> list[int]:
        """A few steps that tell the story: some of one line, and the last of all."""
        lines = self.find(self.replay.frames)
        known = [n for n, step in enumerate(steps) if step["line"] in lines]
        count = min(FRAMES, len(known))
        spread = (round(n * (len(known) - 1) / max(1, count - 1)) for n in range(count))
        return sorted({*(known[n] for n in spread), len(steps) - 1})

    def totals(self, steps: list[Step]) -> dict[str, int]:
        """Bytes from and to memory, and multiply-adds of products."""
        size = {name: t.element_size() for name, (t, _) in self.watch.tensors.items()}
        found = {"read": 0, "written": 0, "products": 0}
        for step in steps:
            for verb, key in (("reads", "read"), ("writes", "written")):
                for name, ranges, *_ in step.get(verb, ()):
                    found[key] += sum(ranges[1::2]) * size.get(name, 0)
            found["products"] += step.get("product", {}).get("count", 0)
        return found

    def steps(self) -> tuple[list[Step], list[dict[str, Any]]]:
        """The steps, and the programs that they belong to."""
        steps: list[Step] = []
        programs: list[dict[str, Any]] = []
        several = len({line.kernel for line in self.watch.lines}) > 1
        for lines in self.by_program():
            first = lines[0]
            made = list(self.program(lines))
            if not made:
                continue
            made[0]["mark"] = "program"
            form = self.replay.program
            form = form if isinstance(form, str) else form[first.kernel]
            label = form.format(*first.program, launch=first.launch)
            found = {"id": list(first.program), "label": label, "start": len(steps)}
            programs.append(found | ({"kernel": first.kernel} if several else {}))
            steps += made
        return steps, programs

    def by_program(self) -> Iterator[list[Line]]:
        """The lines of each program, in turn."""
        found: list[Line] = []
        for line in self.watch.lines:
            if found and key(line) != key(found[0]):
                yield found
                found = []
            found.append(line)
        if found:
            yield found

    def program(self, lines: Sequence[Line]) -> Iterator[Step]:
        """The steps of one program."""
        rows = self.rows(lines)
        dead = self.dead(lines)
        held: Locals = {}
        tiles: dict[ast.stmt, int] = {}
        first = lines[0]
        facts: dict[str, Any] = {"program": first.program[0], "launch": first.launch}
        mark, changes, drop = "", {}, []
        for n, line in enumerate(lines):
            if line.enters:
                tiles[line.node] = tiles.get(line.node, 0) + 1
                facts = {**facts, "tile": tiles[line.node]}
                mark = "tile"
            changed: Locals = {}
            for setter in setters(line):
                changed |= self.changed(setter, held)
            held |= changed
            touches = bool(line.reads or line.writes or line.products or changed)
            changes |= changed
            step = self.step(line, rows[n], facts, self.sentence(line, touches))
            if not step["say"] and {"reads", "writes", "product"} & step.keys():
                raise StoryError(f"line {step['line']} is silent, but {MOVES}")
            if step["say"] and not (self.head(line) and not line.enters):
                for each in self.replay.maps:
                    if each.of in changes:
                        write = _write(self.mapped(each, line, changes[each.of]))
                        step.setdefault("writes", []).append(write)
                if changes:
                    step["state"] = {name: flat(x) for name, x in changes.items()}
                if gone := [name for name in drop if name not in changes]:
                    step["drop"] = gone
                if mark:
                    step["mark"] = mark
                mark, changes, drop = "", {}, []
                yield step
            for name in dead[n]:
                if name in held:
                    del held[name]
                    drop.append(name)

    def step(
        self, line: Line, row: int | None, facts: dict[str, Any], sentence: Sentence
    ) -> Step:
        """What one line does, without its state; it says "" if it is not shown."""
        first, last = span(line.node)
        step: Step = {"line": first}
        if last > first:
            step["last"] = last
        accesses = [*line.reads, *line.writes]
        sizes = [self.watch.tensors[a.name][0].element_size() for a in accesses]
        facts = facts | {
            "count": sum(len(a.index) for a in accesses),
            "bytes": sum(
                len(a.index) * b for a, b in zip(accesses, sizes, strict=True)
            ),
        }
        if line.reads:
            step["reads"] = [[a.name, ranges(a.index)] for a in line.reads]
        if line.writes:
            step["writes"] = [_write(access) for access in line.writes]
        if line.products:
            step["product"] = self.product(line)
        reads = dict.fromkeys(self.known(line, n) for n in names(line.node, ast.Load))
        if uses := [name for name in reads if name in self.shown]:
            step["uses"] = uses
        step["say"] = Moment(line, row, self.replay.rows, facts).say(sentence)
        return step

    def product(self, line: Line) -> dict[str, Any]:
        """Which variables a line multiplies."""
        call = next(
            node
            for node in ast.walk(line.node)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("dot")
        )
        factors = ([*names(each, ast.Load)] for each in call.args[:2])
        known = ([self.known(line, name) for name in each] for each in factors)
        of = [next(name for name in each if name in self.shown) for each in known]
        gives = self.known(line, next(names(line.node, ast.Store)))
        return {"of": of, "gives": gives, "count": line.products}

    def changed(self, line: Line, held: Locals) -> Locals:
        """The variables that a line sets to something else."""
        found: Locals = {}
        for n, own in enumerate(names(line.node, ast.Store)):
            name = self.known(line, own)
            if name not in self.shown or own not in line.after:
                continue
            now = self.drawn(line, line.after[own])
            was = held.get(name)
            if was is None or not np.array_equal(was, now, equal_nan=True):
                found[name] = now
            shape = list(now.shape)
            if self.shapes.setdefault(name, shape) != shape:
                raise StoryError(f"{name} has the shapes {self.shapes[name]}, {shape}")
            if line.reads:
                self.loads.setdefault(
                    name, line.reads[min(n, len(line.reads) - 1)].name
                )
        return found

    def known(self, line: Line, name: str) -> str:
        """What the description calls a variable of a line."""
        return self.replay.names.get(f"{line.kernel}.{name}", name)

    def drawn(self, line: Line, value: np.ndarray) -> np.ndarray:
        """A variable in the shape in which it is drawn: [rows], or [rows, columns]."""
        rows = line.after.get(self.replay.rows)
        if value.ndim == 1 and (rows is None or rows.size != value.size):
            return value[None]
        return value[:, 0] if value.ndim == 2 and value.shape[1] == 1 else value

    def mapped(self, each: Map, line: Line, tile: np.ndarray) -> Access:
        """Which elements of a map a tile is."""
        size = self.maps[each.show.name]
        after = (line.caller.after if line.caller else {}) | line.after
        rows, cols = (after[name].reshape(-1) for name in (each.rows, each.cols))
        inside = (rows < size[0])[:, None] & (cols < size[1])[None, :]
        index = rows[:, None] * size[1] + cols[None, :]
        return Access(each.show.name, index[inside], tile[inside])

    def dead(self, lines: Sequence[Line]) -> list[list[str]]:
        """The variables that nobody reads any more, after each of the lines."""
        events: list[tuple[int, str, str]] = []
        for n, line in enumerate(lines):
            read = names(line.node, ast.Load)
            events += ((n, "read", self.known(line, name)) for name in read)
            for each in setters(line):
                own = each.after.keys() & names(each.node, ast.Store)
                events += ((n, "write", self.known(each, name)) for name in own)
        found: list[list[str]] = [[] for _ in lines]
        for name in (show.name for show in self.replay.state if not show.kept):
            last = None
            for n, verb, which in events:
                if which != name:
                    continue
                again = verb == "write" and last is not None
                # What is set anew in the same turn of a loop stays until then.
                if again and any(line.enters for line in lines[last:n]):
                    found[last].append(name)
                last = n
            if last is not None:
                found[last].append(name)
        return found

    def rows(self, lines: Sequence[Line]) -> list[int | None]:
        """The row that is spoken of at each line: where most changes in its tile."""
        starts = [n for n, line in enumerate(lines) if line.enters] or [0]
        spans = zip(starts, [*starts[1:], len(lines)], strict=True)
        chosen: list[int] = []
        row = 0
        for start, end in spans:
            row = self.most(lines[start:end], row)
            chosen += [row] * (end - len(chosen))
        several = (self.replay.rows in line.after for line in lines)
        return [row if has else None for row, has in zip(chosen, several, strict=True)]

    def most(self, lines: Sequence[Line], otherwise: int) -> int:
        """The row in which the followed variable changes most, if it does."""
        old, _, new = self.replay.follow.partition(" to ")
        was = [line.after[old] for line in lines if old in line.after]
        now = [line.after[new or old] for line in lines if (new or old) in line.after]
        if not was or not now or not was[0].ndim:
            return otherwise
        first, last = (x.reshape(len(x), -1)[:, 0] for x in (was[0], now[-1]))
        if np.array_equal(first, last):
            return otherwise
        since = np.where(np.isfinite(first), first, 0.0)
        return int(np.argmax(np.where(np.isfinite(last), last - since, -np.inf)))

    @staticmethod
    def head(line: Line) -> bool:
        """Whether it is the head of a loop."""
        return isinstance(line.node, ast.For | ast.While)

    def sentence(self, line: Line, touches: bool) -> Sentence:
        """What the description says of a line."""
        first, _ = span(line.node)
        if first in self.sentences:
            return self.sentences[first]
        if touches:
            text = self.text[first - 1].strip()
            raise StoryError(f"line {first} has no sentence: {text}")
        return ""

    @cached_property
    def text(self) -> list[str]:
        """The lines of the file."""
        return self.snippet.data.decode().split("\n")

    @cached_property
    def sentences(self) -> dict[int, Sentence]:
        """The sentences by the first line of their statement."""
        found: dict[int, Sentence] = {}
        for where, sentence in self.replay.lines.items():
            for line in self.find(where):
                if line in found:
                    raise StoryError(f"{where!r}: line {line} has two sentences")
                found[line] = sentence
        return found

    def find(self, where: str) -> list[int]:
        """The first lines of the statements that a key of the description means."""
        statements = self.watch.statements
        mark = f"# --8<-- [line:{where}]"
        marked = [n for n, line in enumerate(self.text, 1) if line.strip() == mark]
        if marked:
            after = range(marked[0] + 1, len(self.text) + 1)
            line = next(n for n in after if n in statements)
            return [span(statements[line])[0]]
        many = where.startswith(EACH)
        section, _, part = where.removeprefix(EACH).rpartition(": ")
        inside = self.snippet.section(section)
        found = [
            n
            for n in range(inside.first, inside.last + 1)
            if part in self.text[n - 1] and n in statements
        ]
        if not found or (len(found) > 1 and not many):
            raise StoryError(f"{where!r} is on the lines {found}, not on one")
        return [span(statements[n])[0] for n in found]


def shown(show: Show, shape: Sequence[int], level: str) -> dict[str, Any]:
    """What of an array or a variable is always the same."""
    found = {
        "name": show.name,
        "label": show.label or show.colour or show.name,
        "title": typeset(show.title),
        "colour": show.colour,
        "level": level,
        "shape": list(shape),
    }
    if show.turned:
        found["turned"] = True
    return found


def setters(line: Line) -> list[Line]:
    """The lines whose variables are set when this one ends: a call's, with its last."""
    found = [] if line.last else [line]
    outer = line.caller
    while outer and outer.last is line:
        found.append(outer)
        outer = outer.caller
    return found


def key(line: Line) -> tuple[Any, ...]:
    """What program a line belongs to."""
    return line.launch, line.kernel, line.program


def flat(values: np.ndarray) -> list[float | int | str]:
    """The numbers of an array, row by row."""
    return [number(value) for value in values.reshape(-1)]


def ranges(index: np.ndarray) -> list[int]:
    """Elements as [start, count, start, count, ...]."""
    found: list[int] = []
    for each in sorted({int(i) for i in index}):
        if found and found[-2] + found[-1] == each:
            found[-1] += 1
        else:
            found += [each, 1]
    return found


def _write(access: Access) -> list[Any]:
    order = np.argsort(access.index, kind="stable")
    assert access.values is not None
    return [access.name, ranges(access.index), flat(access.values[order])]
