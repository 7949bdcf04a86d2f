"""The benchmark, as far as it goes without a GPU."""

import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Shape
from typing import Any

import pytest
import torch
import triton.language as tl
from torch.nn.attention import flex_attention
from triton.runtime.autotuner import Autotuner

from benchmarks import __main__ as command
from benchmarks import calls, parts, peers, run, timing
from benchmarks.part import Kernel, Part, Wrong, near, published
from benchmarks.parts import attention, profiler
from benchmarks.parts.attention import timeline, varlen
from benchmarks.parts.hopper import cpu_time, power
from benchmarks.parts.hopper import timeline as clocked
from benchmarks.run import Run
from snippets.softmax import persistent
from tests.harness.language import replaced_once
from tests.machinery.repository import ROOT
from tests.snippets.backward.reduce_add import teach
from tests.snippets.softmax import test_persistent
from verified_docs.code import snippets
from verified_docs.evidence import manifest, records

FACTS = {"gpu": "NVIDIA H200", "torch": "2", "power limit": "1 W", "date": "2026-11-21"}
OWN = "softmax/one_row.py"
CALLS = timing.Calls


def first_dry(calls: CALLS) -> dict[str, dict[str, float]]:
    """Made-up times: each kernel is twice as fast as the one before."""
    return {
        name: {"seconds": 2.0**-n * (turns[0]() is not None)}
        for n, (name, turns) in enumerate(calls.items())
    }


def raising(error: Exception) -> Any:
    """A peer that does not run."""

    def peer(x: torch.Tensor) -> Any:
        raise error

    return peer


def check(name: str, inputs: calls.Inputs, y: Any) -> None:
    if name != "copy":
        near(y, torch.softmax(inputs["x"], dim=-1))


def part(name: str = "measurements", **facts: Any) -> Part:
    """A list of two short shapes: a file, and peers that are wrong or unwilling."""
    usual = {
        "shapes": [Shape(dtype="float32", cols=cols) for cols in (16, 32)],
        "own": published(OWN),
        "inputs": lambda shape: [{"x": torch.randn(2, shape.cols)}],
        "peers": {
            "copy": lambda x: x.clone,
            "wrong": lambda x: lambda: x,
            "unwilling": raising(RuntimeError("No available kernel.")),
            "missing": raising(ModuleNotFoundError("No module named 'peer'")),
        },
        "check": check,
        "facts": lambda name, _: {"bytes": 4 if name == "copy" else 8, "flops": 6},
        "measure": first_dry,
        "name": f"softmax/{name}",
    }
    return Part(**usual | facts)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """An interpreter that takes half the time."""
    with replaced_once():
        yield


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the record of a run on the CPU will be; its launches are made up."""
    monkeypatch.setattr(timing, "DEVICE", "cpu")
    monkeypatch.setattr(timing, "launches", lambda: contextlib.nullcontext([{"a": 1}]))
    seen = {"copy": 4.0, "matmul": 2.0}
    monkeypatch.setattr(run.Ceilings, "look", lambda self: None)
    monkeypatch.setattr(run.Ceilings, "facts", lambda self: seen)
    monkeypatch.setattr(run.Ceilings, "state", lambda self: {"sm_clock": "1 to 2 MHz"})
    return tmp_path / "softmax.json"


def written(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_list_is_filled(path: Path) -> None:
    own = published(OWN) | {"one_row + more": Kernel(OWN)}
    whole = part(own=own, ceiling="matmul", against={"times_copy": "copy"})
    assert Run(path, FACTS, {"cudnn": "9"}).fill(whole)
    record = written(path)
    assert record["environment"] == FACTS | {"sm_clock": "1 to 2 MHz"}
    assert record["ceilings"] == {"copy": 4.0, "matmul": 2.0}
    assert record["measurements"][0] == {
        "kernel": OWN,
        "dtype": "float32",
        "cols": 16,
        "bytes": 8,
        "flops": 6,
        "seconds": 1.0,
        "launches": [{"a": 1}],
        "bytes_per_second": 8.0,
        "flops_per_second": 6.0,
        "fraction_of_matmul": 3.0,
        "fraction_of_copy": 0.5,  # the copy takes a quarter of the time, for half of it
        "times_copy": 0.25,
    }
    more = record["measurements"][1]
    assert (more["of"], more["times_published"]) == (OWN, 2)
    assert [(e["kernel"], e["cols"]) for e in record["measurements"]] == [
        (name, cols) for cols in (16, 32) for name in (*own, "copy")
    ]
    reasons = {r["kernel"]: r["reason"].partition(";")[0] for r in record["refusals"]}
    assert reasons.keys() == {"wrong", "unwilling"}  # nobody missed the missing one
    assert reasons["unwilling"] == "RuntimeError: No available kernel."
    assert reasons["wrong"].startswith("Wrong: wrong by ")
    # One measurement a line.
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum('"kernel": "copy"' in line for line in lines) == 2


def test_a_list_joins_the_record(path: Path) -> None:
    Run(path, FACTS, {}).fill(part())
    before = written(path)
    assert Run(path, FACTS | {"date": "2026-11-22"}, {}).fill(part("backward"))
    after = written(path)
    assert after["measurements"] == before["measurements"]
    assert len(after["refusals"]) == 2 * len(before["refusals"])
    assert after["environment"]["date"] == "2026-11-22"
    assert after["manifest"].keys() - before["manifest"].keys() == {
        "benchmarks/parts/softmax/backward.py"
    }
    Run(path, FACTS, {}).fill(part())  # measured again, and not twice
    assert len(written(path)["refusals"]) == len(after["refusals"])
    assert len(written(path)["measurements"]) == len(before["measurements"])


def test_a_list_of_other_files_or_of_another_machine_goes(path: Path) -> None:
    measured, backward = (f"parts/softmax/{n}" for n in ("measurements", "backward"))
    Run(path, FACTS, {}).fill(part(own={"more": Kernel(OWN)}))
    Run(path, FACTS, {}).fill(part("backward"))
    whole = written(path)
    own = "run", "timing", "calls", "peers", "parts/softmax/__init__", measured
    own = f"snippets/{OWN}", *(f"benchmarks/{name}.py" for name in own)
    others = [f"benchmarks/{name}.py" for name in (backward, "parts/attention/varlen")]
    others += ["snippets/softmax/online.py"]
    for changed in (*own, *others):
        hashes = whole["manifest"] | {changed: "0" * 64}
        records.write(path, run.text(whole | {"manifest": hashes}))
        Run(path, FACTS, {}).fill(part("backward"))
        assert ("measurements" in written(path)) == (changed in others), changed
    for other in ("gpu", "torch", "power limit"):
        records.write(path, run.text(whole))
        Run(path, FACTS | {other: "another"}, {}).fill(part("backward"))
        assert "measurements" not in written(path)


def test_a_failure_costs_its_list_and_nothing_else(path, capsys):
    own = {OWN: Kernel(OWN, then=raising(ValueError("not today")))}
    full = {"peer": raising(torch.OutOfMemoryError("too much"))}
    one = Run(path, FACTS, {})
    assert one.fill(part("backward"))
    assert not one.fill(part(own=own, peers=full))
    assert one.fill(part("backward"))
    assert "measurements" not in written(path)
    said = capsys.readouterr().out
    assert f"FAILED: measurements {OWN} dtype=float32 cols=16: ValueError" in said
    # Memory that runs out is no refusal.
    assert "measurements is not recorded: 4 failures" in said


def test_the_command_line(path, monkeypatch, capsys):
    assert command.main(["softmax"]) == 1
    assert "no GPU here" in capsys.readouterr().err
    monkeypatch.setattr(command.machine, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(command.machine, "facts", lambda root: FACTS)
    monkeypatch.setattr(command, "compile_all", lambda lists: None)
    monkeypatch.setattr(timing, "tune_briefly", lambda: None)
    monkeypatch.setattr(parts, "load", lambda name: part(name.partition("/")[2]))
    monkeypatch.setattr(parts, "names", lambda: ["one/a", "softmax/b", "softmax/c"])

    def timed(*wanted: str) -> dict[str, Any]:
        """What is recorded when what is wanted was timed."""
        assert command.main([*wanted, "--records", str(path.parent)]) == 0
        return written(path.parent / "nvidia-h200/softmax.json")

    assert "b" not in timed("softmax/c")
    whole = timed("softmax")
    assert whole["b"]
    assert whole["c"]
    assert timed("softmax", "--quick") == whole
    with pytest.raises(SystemExit):
        command.main(["softmax/forward"])
    assert "there is no part softmax/forward: one/a" in capsys.readouterr().err


# The snippet's own test, with its cases.
FIT = test_persistent.test_programs_are_as_many_as_fit


@pytest.mark.parametrize(*FIT.pytestmark[0].args)
def test_persistent_counts_the_same_programs(
    registers, warps, shared, programs, monkeypatch
):
    def counted(kernel: Any, device: torch.device) -> int:
        return 132 * timing.occupancy(kernel)

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(persistent, "resident_programs", counted)
    FIT(registers, warps, shared, programs, monkeypatch)


# What the parts say, on small shapes.

SMALL = {
    "dtype": "float16",
    "rows": 4,
    "cols": 100,
    "head_dim": 16,
    "heads": 2,
    "kv_heads": 2,
    "batch": 2,
    "seq_k": 64,
    "longest": 40,
    "window": 16,
}
OTHERWISE = 48  # what other numbers are at most, whatever a new list calls them
OWN_SMALL = {
    "attention/timeline": {"seq": 128},  # it takes whole tiles
    "attention/decode": {"heads": 4},  # two for each head of the keys
    "companions/gpt": {"layers": 1, "seq": 16, "steps": 2},
    "companions/recipes": {"value_dim": 8},
}


def small_shapes(part: Part) -> list[Shape]:
    """What the shapes of a list become on a CPU: those that differ then."""
    small, found = SMALL | OWN_SMALL.get(part.name, {}), []
    for shape in part.shapes:
        facts = vars(shape).copy()
        for key, value in facts.items():
            if key not in ("heads", "batch") or value > 1:
                number = isinstance(value, int) and not isinstance(value, bool)
                facts[key] = small.get(key, min(value, OTHERWISE) if number else value)
        if Shape(**facts) not in found:
            found.append(Shape(**facts))
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, so nothing that could be tuned, asked or profiled."""
    monkeypatch.setattr(timing, "DEVICE", "cpu")
    gpu = Shape(multi_processor_count=4, shared_memory_per_block_optin=2**17)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    monkeypatch.setattr(Autotuner, "_bench", lambda *_, **__: 1.0)
    monkeypatch.setattr(timing, "ROUND", 100000)
    monkeypatch.setattr(cpu_time, "RUNS", 1)
    seen = [dict.fromkeys(power.FIELDS, 1.0)]
    monkeypatch.setattr(power, "burst", lambda *_: (1.0, seen))
    # What is measured: of this kind, and not how long it takes.
    monkeypatch.setattr(timing, "do_bench", lambda *_, **__: 1.0)
    monkeypatch.setattr(timing, "graph", lambda calls: calls[0])
    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda: 1)
    # Clocks, of which the interpreter has none.
    ticks, cuda = itertools.count(1000), import_module("triton.language.extra.cuda")
    monkeypatch.setattr(cuda, "globaltimer", lambda: tl.full((), next(ticks), tl.int64))
    monkeypatch.setattr(cuda, "smid", lambda: tl.program_id(0) % 2)
    teach(monkeypatch)
    # It would ask what was compiled.
    monkeypatch.setitem(persistent.softmax.__kwdefaults__, "programs", 4)
    # Peers that a CPU has in another form.
    monkeypatch.setattr(peers, "sdpa_kernel", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    # A CPU has no kernels for the backward pass, but what they are made from.
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)
    monkeypatch.setattr(profiler, "counts", lambda *_: defaultdict(dict))


def test_the_launches_of_a_call_are_counted_together() -> None:
    def launch(name: str, cycles: int, percent: int, instructions: int = 1) -> Any:
        told = dict.fromkeys(profiler.COUNTED, "1") | {
            "cycles": f"{cycles:,}",
            "fraction_of_tensor_cycles": str(percent),
            "instructions": str(instructions),
            "stalls_wait": str(cycles),
            "registers": str(cycles // 100),
        }
        row = {profiler.COUNTED[key]: value for key, value in told.items()}
        return row | {"Kernel Name": name}

    start, only = launch("next_call", 1, 0), launch("c", 500, 50)
    small, dq = launch("small", 10, 0), launch("dq_kernel", 3000, 80, 4)
    rows = [start, small, dq, start, only]
    first, second = (
        profiler.together(call, ["dq_kernel"]) for call in profiler.by_call(rows)
    )
    assert (first["cycles"], first["instructions"]) == (3010, 5)
    share = 3000 * 0.8 / 3010
    assert first["fraction_of_tensor_cycles"] == pytest.approx(share)
    assert first["stalls_wait"] == pytest.approx((10 + 4 * 3000) / 5)
    assert first["registers"] == 30
    assert first["fraction_of_tensor_cycles_dq"] == 0.8
    assert second["fraction_of_tensor_cycles"] == 0.5
    assert second.keys() == profiler.COUNTED.keys()


ABROAD = {"fa3-fwd", "flash-attn-4", "flashinfer", "liger"}  # only a GPU has them


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", parts.names())
def test_every_list_can_be_measured(name, path, monkeypatch):
    if name.startswith("companions/norm_"):  # they ask the GPU that x is on
        monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda _: True))
    folder, _, own = name.partition("/")
    part, path = parts.load(name), path.with_name(f"{folder}.json")
    assert len({json.dumps(vars(s)) for s in part.shapes}) == len(part.shapes)
    assert all(calls.load(each.of, each.changes) for each in part.own.values())
    own_here = {  # less the kernels that only a GPU runs
        n: k for n, k in part.own.items() if not snippets.load(ROOT, k.of).gpu_only
    }
    part = replace(part, own=own_here)
    torch.manual_seed(0)  # On few numbers fp8 errs a lot, with some draws too much.

    def check(kernel: str, inputs: calls.Inputs, result: Any) -> None:
        part.check(kernel, inputs, result)
        if " - " not in kernel and kernel != "copy":  # those are not looked at
            several = isinstance(result, tuple)  # such as three gradients
            wrong = tuple(1.5 * x for x in result) if several else 1.5 * result
            with pytest.raises(Wrong):
                part.check(kernel, inputs, wrong)

    shapes, asked = [], set()
    for shape in (every := small_shapes(part)):
        # The last one, and those at which another kernel runs, as at the first.
        if shape is every[-1] or not asked.issuperset(part.kernels(shape)):
            shapes.append(shape)
            asked.update(part.kernels(shape))
    with torch.no_grad():
        run = Run(path, FACTS, {})
        assert run.fill(replace(part, shapes=shapes, check=check)), run.failures
    assert not run.refusals
    entries = written(path)[own]
    assert asked - {each["kernel"] for each in entries} <= ABROAD
    wanted = {f"fraction_of_{part.ceiling}"} if part.ceiling else set()
    wanted |= {key for key, peer in part.against.items() if peer not in ABROAD}
    wanted |= vars(shapes[0]).keys()
    assert all(wanted <= entry.keys() for entry in entries)
    hashes = records.load_benchmark(path).manifest
    assert records.changed(ROOT, hashes) == []
    assert manifest.reached(ROOT, hashes) == hashes.keys()
    assert f"benchmarks/parts/{folder}/__init__.py" in hashes


@pytest.mark.usefixtures("small")
def test_decoding_reads_one_cache_after_the_other() -> None:
    part = parts.load("attention/decode")
    shape = small_shapes(part)[-1]
    assert part.facts("", shape) == {"bytes": 2 * 2 * 2 * 64 * 16 * 2}
    turns = part.inputs(shape)
    assert len(turns) == 100000 // part.facts("", shape)["bytes"] + 1
    one, *_, last = (part.make("attention/split_kv.py", inputs) for inputs in turns)
    assert not torch.equal(one()[0], last()[0])


@pytest.mark.usefixtures("small")
def test_the_programs_of_a_multiprocessor() -> None:
    shape = Shape(dtype="float32", head_dim=16, seq=256, causal=True, batch=1, heads=2)
    part = parts.load("attention/timeline")
    (inputs,) = part.inputs(shape)
    for kernel in part.own:
        found = timeline.measure({kernel: [part.make(kernel, inputs)]})[kernel]
        # The interpreter runs the even ones on one multiprocessor, in turn; under a
        # causal mask they begin with the last block of a head.
        last = 256 // timeline.TILES[kernel]["BLOCK_M"] - 1
        expected = [(h, b) for h in range(2) for b in range(last, -1, -2)]
        programs = found["programs"]
        assert [(each["head"], each["block"]) for each in programs] == expected
        assert programs[0]["begin_seconds"] == 0
        assert programs[-1]["end_seconds"] < found["span_seconds"] < 1e-6


TURN = torch.tensor((0, 10, 300, 600, 610, 900))  # stamps of a turn of 1000 cycles


def test_the_turns_of_a_program_and_of_what_is_beside_it() -> None:
    # Of 12 programs two multiprocessors have two at a time, which are 300 cycles apart.
    stamps, groups = torch.full((12, 1, 16, 8), -1), {"program": clocked.IN_TURN}
    for program, tile in itertools.product(range(12), range(16)):
        launched, place = divmod(program // 2, 2)
        begin = 18000 * launched + 300 * place + 1000 * tile
        stamps[program, 0, tile, :6] = TURN + begin
    stamps[:, 0, 0, 7] = torch.arange(12) % 2
    found = clocked.spans(stamps, groups)
    assert (found["cycles"], found["cycles_per_tile"]) == (4000, 1000)
    # The middle one, and what is on the same multiprocessor.
    assert [each["program"] for each in found["groups"]] == [6, 4]
    scores, *_ = (s for s in found["groups"][0]["spans"] if s["what"] == "scores")
    times = {"tile": 6, "begin_cycles": 10, "end_cycles": 300}
    assert scores == {"what": "scores"} | times
    # One multiplies from 10 to 300 and from 610 to 900, and in softmax until 610; the
    # other 300 cycles later.
    spans = (10, 300), (310, 600), (610, 900), (910, 1000), (0, 200)
    multiplying = {cycle for span in spans for cycle in range(*span)}
    exponentials = {*range(300, 900)}
    for name, cycles in (
        ("product", multiplying),
        ("softmax", exponentials),
        ("both", multiplying & exponentials),
    ):
        part = found[f"fraction_of_cycles_with_{name}"]
        assert part == pytest.approx(len(cycles) / 1000)
    # Of two neighbours one ends in the midst of the other.
    stamps[:, 0, :, :6] += torch.arange(12)[:, None, None] // 2 % 2 * 8000
    with pytest.raises(LookupError, match="a program began or ended meanwhile"):
        clocked.spans(stamps, groups)


def test_half_the_operations_are_masked() -> None:
    shape = attention.shape(16, 8, batch=2, heads=3, causal=False)
    assert attention.flops("", shape) == {"flops": 4 * 2 * 3 * 8 * 8 * 16}
    shape.causal = True
    assert attention.flops("", shape) == {"flops": 2 * 2 * 3 * 8 * 8 * 16}


def test_lengths_fill_the_batch_as_they_say() -> None:
    for shape in varlen.PART.shapes:
        seqs = varlen.lengths(shape)
        assert seqs[-1] == shape.longest
        assert seqs == sorted(seqs)
        assert sum(seqs) == varlen.facts("", shape)["tokens"]
        part = sum(seqs) / (len(seqs) * shape.longest)
        assert part == pytest.approx(shape.fill, abs=0.04)


def test_a_kernel_is_changed_in_its_text() -> None:
    changed = calls.load(OWN, {"def softmax(": "def twice("})
    assert changed.twice
    assert not hasattr(calls.load(OWN), "twice")
    for old in ("def softmax(x, y", "x"):
        with pytest.raises(ValueError, match="times, not once"):
            calls.load(OWN, {old: ""})


# The clock.


def test_kernels_take_turns_in_another_order_each_round(monkeypatch):
    def do_bench(call: Any, *_: int, **__: str) -> float:
        seen.append(call)
        return 1000.0 * len(seen)

    monkeypatch.setattr(timing, "do_bench", do_bench)
    monkeypatch.setattr(timing.torch.cuda, "synchronize", lambda: None)
    orders = []
    for seed in ("one", "one", "two"):
        seen: list[str] = []
        timing.ORDER.seed(seed)
        found = timing.medians({name: name for name in "abcd"}, rounds=3)
        orders.append([seen[i : i + 4] for i in range(0, len(seen), 4)])
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(turn) == [*"abcd"] for order in orders for turn in order)
    assert len({tuple(turn) for turn in orders[0]}) > 1
    assert found["a"] == 1 + sorted(i for i, name in enumerate(seen) if name == "a")[1]


def test_ceilings_are_medians_of_the_best_with_their_spread():
    seen = run.Ceilings()
    small, big = [9.0, 1.0, 1.0], [5.0, 4.0, 6.0]
    seen.speeds = {"copy": [3.0, 1.0, 2.0], "small": small, "big": big}
    seen.states = {"sm_clock": [1980.0, 1755.0], "temperature": [41.0]}
    assert seen.facts() == {
        "copy": 2.0,
        "matmul": 5.0,
        "product": "big",
        "looks": 3,
        "lowest": {"copy": 1.0, "matmul": 4.0},
        "highest": {"copy": 3.0, "matmul": 6.0},
    }
    state = {"sm_clock": "1755 to 1980 MHz", "temperature": "41 to 41 °C"}
    assert seen.state() == state


def test_launches_that_are_alike_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Shape(shared=16, num_warps=4, num_stages=2)
    compiled = Shape(n_regs=40, n_spills=0, metadata=metadata, _init_handles=dict)

    class Kernel:
        __name__ = "kernel"

        def run(self, *args: Any, **kwargs: Any) -> Shape:
            return compiled

    monkeypatch.setattr(timing, "JITFunction", Kernel)
    monkeypatch.setattr(timing, "occupancy", lambda compiled: 3)
    with timing.launches() as found:
        for block in (64, 64, 128, 64):
            Kernel().run(1, BLOCK_M=block, num_warps=4)
        Kernel().run(1, BLOCK_M=64, warmup=True)
    counts = [(each["constants"]["BLOCK_M"], each["times"]) for each in found]
    assert counts == [(64, 3), (128, 1)]
    told = {"registers": 40, "shared_bytes": 16, "programs_per_multiprocessor": 3}
    assert found[0].items() >= told.items()
