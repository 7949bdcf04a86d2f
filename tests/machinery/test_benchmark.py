"""The benchmark, as far as it goes without a GPU."""

import contextlib
import itertools
import json
import pickle
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Shape
from typing import Any

import pytest
import torch
import triton.language as tl
from triton.runtime.autotuner import Autotuner

from benchmarks import __main__ as command
from benchmarks import beforehand, calls, parts, peers, run, timing
from benchmarks.part import Part, Trial, Wrong, near, published
from benchmarks.parts import attention
from benchmarks.parts.attention import timeline, varlen
from benchmarks.run import Run
from snippets.softmax import persistent
from tests.machinery.repository import ROOT
from verified_docs.evidence import records

FACTS = {
    "gpu": "NVIDIA H200",
    "torch": "2",
    "power limit": "700 W",
    "date": "2026-11-21",
}
OWN = "softmax/one_row.py"
CALLS = timing.Calls


def first_dry(calls: CALLS) -> dict[str, dict[str, float]]:
    """Made-up times: each kernel is twice as fast as the one before."""
    return {
        name: {"seconds": 2.0**-n * (turns[0]() is not None)}
        for n, (name, turns) in enumerate(calls.items())
    }


def trial(shape: Shape, **more: Any) -> Trial:
    """A published kernel, and peers that are wrong, unwilling or not there."""
    x = torch.randn(2, shape.cols)

    def refuse() -> Any:
        raise RuntimeError("No available kernel.")

    def missing() -> Any:
        raise ModuleNotFoundError("No module named 'peer'")

    return Trial(
        own=published([OWN], x),
        peers={
            "copy": lambda: x.clone,
            "wrong": lambda: lambda: x,
            "unwilling": refuse,
            "missing": missing,
        },
        check=lambda name, y: name == "copy" or near(y, torch.softmax(x, dim=-1)),
        work={"bytes": 8},
        facts={"copy": {"bytes": 4}},
        measure=first_dry,
    )


def part(name: str = "measurements", trial: Any = trial, **facts: Any) -> Part:
    """A part of two short shapes."""

    shapes = [Shape(dtype="float32", cols=cols) for cols in (16, 32)]
    name = f"softmax/{name}"
    return Part(own=(OWN,), shapes=lambda: shapes, trial=trial, name=name, **facts)


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
    assert Run(path, FACTS, {"cudnn": "9"}).fill(part(against={"times_copy": "copy"}))
    record = written(path)
    assert record["format"] == records.FORMAT
    assert record["environment"] == FACTS | {"sm_clock": "1 to 2 MHz"}
    assert record["ceilings"] == {"copy": 4.0, "matmul": 2.0}
    assert record["measurements"][0] == {
        "kernel": OWN,
        "dtype": "float32",
        "cols": 16,
        "bytes": 8,
        "seconds": 1.0,
        "launches": [{"a": 1}],
        "bytes_per_second": 8.0,
        "fraction_of_copy": 1.0,  # the copy takes half the time, for half the bytes
        "times_copy": 0.5,
    }
    assert [(e["kernel"], e["cols"]) for e in record["measurements"]] == [
        (name, cols) for cols in (16, 32) for name in (OWN, "copy")
    ]
    reasons = {r["kernel"]: r["reason"].partition(";")[0] for r in record["refusals"]}
    assert reasons.keys() == {"wrong", "unwilling"}  # nobody missed the missing one
    assert reasons["unwilling"] == "RuntimeError: No available kernel."
    assert reasons["wrong"].startswith("Wrong: wrong by ")
    loaded = records.load_benchmark(path)
    assert loaded.stale(ROOT) == []
    # One measurement a line.
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum('"kernel": "copy"' in line for line in lines) == 2


def test_what_speed_is_divided_by(path: Path) -> None:
    def alone(shape: Shape) -> Trial:
        found = trial(shape)
        return Trial(found.own, {}, found.check, {"flops": 6}, measure=first_dry)

    assert Run(path, FACTS, {}).fill(part(trial=alone, ceiling="matmul"))
    for entry in written(path)["measurements"]:
        assert entry["flops_per_second"] == 6
        assert entry["fraction_of_matmul"] == 3


@pytest.mark.parametrize(
    "changed", ["snippets/softmax/one_row.py", "benchmarks/timing.py", "the formula"]
)
def test_a_changed_benchmark_makes_its_figures_stale(
    changed: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run(path, FACTS, {}).fill(part())
    changed = changed.replace("the formula", "benchmarks/parts/softmax/measurements.py")
    copied = path.parent / "repository"
    for name in written(path)["manifest"]:
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        (copied / name).write_bytes((ROOT / name).read_bytes())
    assert records.load_benchmark(path).stale(copied) == []
    with (copied / changed).open("a") as file:
        file.write("# changed\n")
    assert records.load_benchmark(path).stale(copied) == [changed]


def test_the_manifest_is_what_was_loaded() -> None:
    loaded = parts.load("attention/head")
    entries = [
        {"kernel": "sdpa-flash"},
        {"kernel": "more", "of": "attention/flash1.py"},
    ]
    found = run.files(loaded, entries)
    assert {
        "benchmarks/run.py",
        "benchmarks/timing.py",
        "benchmarks/calls.py",
        "benchmarks/peers.py",
        "benchmarks/parts/attention/__init__.py",
        "benchmarks/parts/attention/head.py",
        "snippets/attention/flash1.py",
    } <= found
    assert not any("softmax" in name or "varlen" in name for name in found)
    assert sum(name.startswith("snippets/") for name in found) == 1


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


@pytest.mark.parametrize("other", ["gpu", "torch", "power limit"])
def test_a_list_of_another_machine_goes(other: str, path: Path) -> None:
    Run(path, FACTS, {}).fill(part())
    Run(path, FACTS | {other: "another"}, {}).fill(part("backward"))
    assert "measurements" not in written(path)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        (f"snippets/{OWN}", False),
        ("benchmarks/peers.py", False),
        ("benchmarks/parts/softmax/measurements.py", False),
        ("benchmarks/parts/softmax/__init__.py", False),
        ("benchmarks/parts/softmax/backward.py", True),
        ("snippets/softmax/online.py", True),
    ],
)
def test_a_list_of_other_files_goes(changed: str, kept: bool, path: Path) -> None:
    Run(path, FACTS, {}).fill(part())
    Run(path, FACTS, {}).fill(part("backward"))
    old = written(path)
    old["manifest"][changed] = "0" * 64
    run.write(old, path)
    Run(path, FACTS, {}).fill(part("backward"))
    assert ("measurements" in written(path)) == kept


def test_a_failure_costs_its_list_and_nothing_else(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(shape: Shape) -> Trial:
        def fail() -> Any:
            raise ValueError("not today")

        def full() -> Any:
            raise torch.OutOfMemoryError("too much")

        return Trial({OWN: fail}, {"peer": full}, trial(shape).check, measure=first_dry)

    one = Run(path, FACTS, {})
    assert one.fill(part("backward"))
    assert not one.fill(part(trial=broken))
    assert one.fill(part("backward"))
    assert "measurements" not in written(path)
    said = capsys.readouterr().out
    assert f"FAILED: measurements {OWN} dtype=float32 cols=16: ValueError" in said
    # Memory that runs out is no refusal.
    assert "measurements is not recorded: 4 failures" in said


def test_a_changed_kernel_is_compared_with_the_published_one(path: Path) -> None:
    def changed(shape: Shape) -> Trial:
        found = trial(shape)
        facts = {"one_row + more": {"of": OWN}}
        own = found.own | {"one_row + more": found.own[OWN]}
        return Trial(own, {}, found.check, facts=facts, measure=first_dry)

    assert Run(path, FACTS, {}).fill(part(trial=changed))
    whole, more = written(path)["measurements"][:2]
    assert (more["of"], more["times_published"]) == (OWN, 2)
    assert "times_published" not in whole


def test_the_command_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["softmax"]) == 1
    assert "no GPU here" in capsys.readouterr().err
    monkeypatch.setattr(command.machine, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(command.machine, "facts", lambda root: FACTS)
    compiled: list[str] = []
    monkeypatch.setattr(command, "compile_all", compiled.extend)
    monkeypatch.setattr(timing, "tune_briefly", lambda: None)
    monkeypatch.setattr(parts, "load", lambda name: part(name.partition("/")[2]))
    monkeypatch.setattr(parts, "names", lambda: ["one/a", "softmax/b", "softmax/c"])
    assert command.main(["softmax", "--records", str(path.parent)]) == 0
    assert compiled == ["softmax/b", "softmax/c"]
    found = written(path.parent / "nvidia-h200/softmax.json")
    assert found["b"]
    assert found["c"]
    compiled.clear()
    assert command.main(["softmax/c", "--records", str(path.parent)]) == 0
    assert compiled == ["softmax/c"]
    with pytest.raises(SystemExit):
        command.main(["softmax/forward"])
    assert "there is no part softmax/forward: one/a" in capsys.readouterr().err


# What the parts say, on small shapes.

SMALL = {
    "dtype": "float32",
    "rows": 4,
    "cols": 100,
    "head_dim": 16,
    "heads": 4,
    "kv_heads": 2,
    "batch": 2,
    "seq": 48,
    "seq_k": 64,
    "longest": 40,
    "window": 16,
}


def small_shapes(part: Part) -> list[Shape]:
    """The first and the last of what the shapes of a part become on a CPU."""
    found: list[Shape] = []
    for shape in part.shapes():
        facts = {k: SMALL.get(k, v) for k, v in vars(shape).items()}
        facts |= {
            k: 1 for k in ("heads", "batch") if facts.get(k) and vars(shape)[k] == 1
        }
        if Shape(**facts) not in found:
            found.append(Shape(**facts))
    return found[:: max(1, len(found) - 1)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, so nothing that could be tuned or asked."""
    monkeypatch.setattr(timing, "DEVICE", "cpu")
    gpu = Shape(multi_processor_count=4, shared_memory_per_block_optin=2**17)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    monkeypatch.setattr(Autotuner, "_bench", lambda *_, **__: 1.0)
    monkeypatch.setattr(timing, "ROUND", 100000)
    # Clocks, of which the interpreter has none.
    ticks, cuda = itertools.count(1000), import_module("triton.language.extra.cuda")
    monkeypatch.setattr(cuda, "globaltimer", lambda: tl.full((), next(ticks), tl.int64))
    monkeypatch.setattr(cuda, "smid", lambda: tl.program_id(0) % 2)
    # It would ask what was compiled.
    monkeypatch.setitem(persistent.softmax.__kwdefaults__, "programs", 4)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", parts.names())
def test_every_part_is_right_about_its_kernels(name: str) -> None:
    torch.manual_seed(0)
    part, seen = parts.load(name), set()
    for shape in small_shapes(part):
        with torch.no_grad():
            found = part.trial(shape)
            for kernel, make in found.own.items():
                made = make()
                turns = made if isinstance(made, list) else [made]
                result = turns[-1]()
                found.check(kernel, result)
                seen.add(kernel)
                if " - " in kernel:  # it lost something, and is not looked at
                    continue
                wrong = result[0] if isinstance(result, tuple) else result
                wrong *= 1.5
                with pytest.raises(Wrong):
                    found.check(kernel, result)
    assert seen == set(part.own)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", parts.names())
def test_every_part_joins_a_record(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = parts.load(name)
    shape = small_shapes(part)[-1]
    trial = part.trial(shape)
    calls = dict.fromkeys(trial.own, lambda: dict)
    trial = replace(
        trial, own=calls, peers={}, check=lambda *_: None, measure=first_dry
    )
    part = replace(part, shapes=lambda: [shape], trial=lambda _: trial)
    assert Run(path, FACTS, {}).fill(part)
    found = written(path)[name.partition("/")[2]]
    assert [entry["kernel"] for entry in found] == list(calls)
    assert all(entry.keys() >= vars(shape).keys() for entry in found)


@pytest.mark.parametrize("name", parts.names())
def test_the_shapes_of_a_part_differ(name: str) -> None:
    shapes = list(parts.load(name).shapes())
    assert len({json.dumps(vars(shape)) for shape in shapes}) == len(shapes)


@pytest.mark.usefixtures("small")
def test_decoding_reads_one_cache_after_the_other() -> None:
    part = parts.load("attention/decode")
    found = part.trial(small_shapes(part)[-1])
    assert found.work == {"bytes": 2 * 2 * 2 * 64 * 16 * 4}
    turns = found.own["attention/split_kv.py"]()
    assert len(turns) == 100000 // found.work["bytes"] + 1
    assert not torch.equal(turns[0]()[0], turns[-1]()[0])


@pytest.mark.usefixtures("small")
def test_the_programs_of_a_multiprocessor() -> None:
    shape = Shape(dtype="float32", head_dim=16, seq=256, causal=True, batch=1, heads=2)
    for kernel, make in parts.load("attention/timeline").trial(shape).own.items():
        found = timeline.measure({kernel: [make()]})[kernel]
        # The interpreter runs the even ones on one multiprocessor, in turn; under a
        # causal mask they begin with the last block of a head.
        last = 256 // timeline.TILES[kernel]["BLOCK_M"] - 1
        expected = [(h, b) for h in range(2) for b in range(last, -1, -2)]
        programs = found["programs"]
        assert [(each["head"], each["block"]) for each in programs] == expected
        assert programs[0]["begin_seconds"] == 0
        assert all(
            0 < each["end_seconds"] - each["begin_seconds"] < 1e-6 for each in programs
        )
        assert programs[-1]["end_seconds"] < found["span_seconds"] < 1e-6


def test_the_protocol() -> None:
    shapes = list(attention.protocol())
    assert {s.batch * s.seq for s in shapes if s.seq <= attention.TOKENS} == {16384}
    assert {s.heads * s.head_dim for s in shapes} == {2048}
    shape = Shape(batch=2, heads=3, seq=8, head_dim=16, causal=False)
    assert attention.flops(shape) == {"flops": 4 * 2 * 3 * 8 * 8 * 16}
    shape.causal = True
    assert attention.flops(shape) == {"flops": 2 * 2 * 3 * 8 * 8 * 16}


def test_lengths_fill_the_batch_as_they_say() -> None:
    for shape in varlen.shapes():
        seqs = varlen.lengths(shape)
        assert seqs[-1] == shape.longest
        assert seqs == sorted(seqs)
        assert sum(seqs) == shape.tokens
        part = sum(seqs) / (len(seqs) * shape.longest)
        assert part == pytest.approx(shape.fill, abs=0.04)


def test_what_is_compiled_beforehand_can_be_sent_to_a_process() -> None:
    every = beforehand.tasks(parts.names())
    kernels = {kernel for _, kernel, _ in every}
    assert kernels >= {"flex_attention", "torch.compile", "attention/flash2_tuned.py"}
    assert every == pickle.loads(pickle.dumps(every))


# How snippets are called.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def softmax(x, *, block=1): ...", "softmax"),
        ("def log_softmax(x): ...", "log_softmax"),
        ("def check(q, k, v): ...\ndef attend(q, k, v, *, causal): ...", "attend"),
        ("def attention(q, k, v): ...\ndef longest(size): ...", "attention"),
        ("def attention(q, k, v, lengths): ...", None),
        ("SIZE = 1", None),
    ],
)
def test_what_a_file_publishes(text: str, name: str | None, tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text(text)
    found = calls.public(path)
    assert (found and found[0]) == name


def test_a_file_that_nobody_can_call() -> None:
    with pytest.raises(LookupError, match=r"run\.py"):
        calls.call(run)


def test_a_kernel_is_changed_in_its_text() -> None:
    changed = calls.load(OWN, {"def softmax(": "def twice("})
    assert changed.twice
    assert not hasattr(calls.load(OWN), "twice")
    for old in ("def softmax(x, y", "x"):
        with pytest.raises(ValueError, match="times, not once"):
            calls.load(OWN, {old: ""})


def test_a_kernel_of_one_head_takes_them_in_turn() -> None:
    q = torch.randn(2, 3, 20, 16)
    result, _ = calls.prepare("attention/flash2_single_head.py", q, q, q)()
    attention.check(q, q, q, result)


def test_sequences_are_packed() -> None:
    x = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    packed = calls.pack(x, [1, 4])
    assert torch.equal(packed[0], x[0, :, 0])
    assert torch.equal(packed[4], x[1, :, 3])
    assert calls.boundaries(x, [1, 4]).tolist() == [0, 1, 5]
    assert calls.pack(x).shape == (8, 3, 5)
    assert calls.boundaries(x).tolist() == [0, 4, 8]


# The clock, and peers.


def test_flash_attention_3_is_asked_if_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = torch.randn(2, 3, 40, 16)
    with pytest.raises(ModuleNotFoundError):
        peers.fa3(q, q, q)
    (tmp_path / "fa3_fwd_interface.py").write_text(
        "def flash_attn_func(q, k, v, causal=False):\n"
        "    assert q.shape == (2, 40, 3, 16)  # seq before heads\n"
        "    return q * (2 if causal else 1)\n"
    )
    info = tmp_path / "fa3_fwd-0.0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: fa3-fwd\nVersion: 0.0.3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert torch.equal(peers.fa3(q, q, q, causal=True)(), 2 * q)
    assert peers.versions()["fa3-fwd"] == "0.0.3"


def test_grouped_rows() -> None:
    q, k, v = torch.randn(2, 8, 1, 16), *torch.randn(2, 2, 2, 40, 16)
    attention.check(
        q[:, -1:], k, v, peers.grouped_rows("sdpa-flash", q, k, v)()[:, -1:]
    )


def test_ceilings_are_medians_of_the_best_with_their_spread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = run.Ceilings()
    seen.speeds = {
        "copy": [3.0, 1.0, 2.0],
        "small": [9.0, 1.0, 1.0],
        "big": [5.0, 4.0, 6.0],
    }
    seen.states = {"sm_clock": [1980.0, 1755.0], "temperature": [41.0]}
    assert seen.facts() == {
        "copy": 2.0,
        "matmul": 5.0,
        "product": "big",
        "looks": 3,
        "lowest": {"copy": 1.0, "matmul": 4.0},
        "highest": {"copy": 3.0, "matmul": 6.0},
    }
    assert seen.state() == {
        "sm_clock": "1755 to 1980 MHz",
        "temperature": "41 to 41 °C",
    }


def test_launches_that_are_alike_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled:
        n_regs, n_spills = 40, 0
        metadata = type("M", (), {"shared": 16, "num_warps": 4, "num_stages": 2})

        def _init_handles(self) -> None: ...

    class Kernel:
        __name__ = "kernel"

        def run(self, *args: Any, **kwargs: Any) -> Compiled:
            return Compiled()

    monkeypatch.setattr(timing, "JITFunction", Kernel)
    monkeypatch.setattr(timing, "occupancy", lambda compiled: 3)
    with timing.launches() as found:
        for block in (64, 64, 128, 64):
            Kernel().run(1, BLOCK_M=block, num_warps=4)
        Kernel().run(1, BLOCK_M=64, warmup=True)
    assert [(e["constants"], e["times"]) for e in found] == [
        ({"BLOCK_M": 64}, 3),
        ({"BLOCK_M": 128}, 1),
    ]
    assert found[0] == {
        "name": "kernel",
        "registers": 40,
        "spills": 0,
        "shared_bytes": 16,
        "warps": 4,
        "stages": 2,
        "programs_per_multiprocessor": 3,
        "constants": {"BLOCK_M": 64},
        "times": 3,
    }
