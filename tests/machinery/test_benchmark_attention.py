"""The attention benchmark, as far as it goes without a GPU."""

import contextlib
import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import timing
from benchmarks.attention import (
    decode,
    forward,
    fp8,
    kernels,
    memory,
    varlen,
    warm,
    window,
)
from benchmarks.attention.measure import Wrong, check_rows, first
from benchmarks.attention.run import PARTS, Disagree, Run, hashes
from tests.machinery.repository import ROOT
from verified_docs.evidence import records

ENVIRONMENT = {"gpu": "NVIDIA H200", "date": "2026-11-21"}
Tensor = torch.Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Any:
    """A stand-in for a published kernel."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    s = q @ k.mT * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
        s = s.where(seen, float("-inf"))
    return torch.softmax(s, dim=-1) @ v, torch.logsumexp(s, dim=-1)


def refuse(*_: object) -> Tensor:
    raise RuntimeError("No available kernel.")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on the CPU, of small shapes, with made-up times."""
    monkeypatch.setattr(
        timing,
        "inputs",
        # Not every CPU multiplies bfloat16.
        lambda rows, cols, dtype: torch.randn(rows, cols),
    )
    monkeypatch.setattr(timing, "launches", lambda: contextlib.nullcontext([{"a": 1}]))
    monkeypatch.setattr(timing, "graph", lambda calls: lambda: [c() for c in calls])
    monkeypatch.setattr(
        timing,
        "medians",
        lambda calls: {
            name: 2.0**-n * (call() is not None)
            for n, (name, call) in enumerate(calls.items())
        },
    )
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(forward, "TOKENS", 64)
    monkeypatch.setattr(forward, "WIDTH", 32)
    monkeypatch.setattr(forward, "HEAD_DIMS", (16,))
    monkeypatch.setattr(forward, "SEQS", (16, 32))
    monkeypatch.setattr(forward, "TUNED_AT", 32)
    own = "attention/flash2_causal.py"
    monkeypatch.setattr(
        kernels,
        "published",
        lambda part, seq, causal=False: {own: partial(attention, causal=causal)},
    )
    monkeypatch.setattr(
        forward,
        "peers",
        lambda causal, seq: {
            "sdpa-flash": lambda: lambda *qkv: attention(*qkv, causal=causal)[0],
            "sdpa-cudnn": lambda: refuse,
        },
    )
    return Run(tmp_path, ENVIRONMENT, PARTS)


def test_forward(run: Run) -> None:
    forward.forward(run, matmul=1e6)
    found = run.record["forward"]
    assert [(e["causal"], e["seq"], e["kernel"]) for e in found] == [
        (causal, seq, kernel)
        for causal in (False, True)
        for seq in (16, 32)
        for kernel in ("attention/flash2_causal.py", "sdpa-flash")
    ]
    own, peer = found[2:4]
    assert own == {
        "kernel": "attention/flash2_causal.py",
        "dtype": "float32",
        "head_dim": 16,
        "seq": 32,
        "causal": False,
        "batch": 2,
        "heads": 2,
        "seconds": 1.0,
        "flops": 4 * 2 * 2 * 32 * 32 * 16,
        "flops_per_second": 4 * 2 * 2 * 32 * 32 * 16,
        "fraction_of_matmul": 4 * 2 * 2 * 32 * 32 * 16 / 1e6,
        "times_flash": 0.5,
        "launches": [{"a": 1}],
    }
    assert peer.keys() == own.keys() - {"launches"}
    assert found[6]["flops"] * 2 == own["flops"]
    assert len(run.record["refusals"]) == 4
    assert run.record["refusals"][0] == {
        "part": "forward",
        "kernel": "sdpa-cudnn",
        "head_dim": 16,
        "seq": 32,
        "causal": False,
        "batch": 2,
        "heads": 2,
        "reason": "RuntimeError: No available kernel.",
    }
    assert run.finish() == 0
    written = records.load_benchmark(run.path)
    assert written.environment == ENVIRONMENT
    assert written.stale(ROOT) == []
    assert not run.incomplete.exists()


def test_fp8(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def own(q: Tensor, k: Tensor, v: Tensor, *scales: Tensor, causal: bool) -> Any:
        assert {x.dtype for x in (q, k, v)} == {torch.float8_e4m3fn}
        exact = [
            x.float() * scale[..., None, None]
            for x, scale in zip((q, k, v.mT), scales, strict=True)
        ]
        return attention(*exact, causal=causal)

    name = "attention/flash2_fp8.py"
    for module in (forward, fp8):
        for constant in ("TOKENS", "WIDTH", "HEAD_DIMS", "SEQS", "TUNED_AT"):
            monkeypatch.setattr(module, constant, getattr(forward, constant))
    monkeypatch.setattr(
        kernels,
        "published",
        lambda part, seq, causal: {name: partial(own, causal=causal)},
    )
    shape = {"head_dim": 16, "seq": 32, "causal": False}
    bf16 = {"kernel": fp8.BF16, "seconds": 3.0} | shape
    run.record["forward"] = [bf16, bf16 | {"causal": True, "seconds": 5.0}]
    fp8.fp8(run, matmul=1e6)
    assert not run.failures
    entry = run.record["fp8"][1]
    assert entry | shape == entry
    assert entry["dtype"] == "float8_e4m3fn"
    assert entry["times_bf16"] == 3.0
    assert "times_bf16" not in run.record["fp8"][0]
    assert len(run.record["fp8"]) == 4


def test_decode(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "BATCHES", (1, 3))
    monkeypatch.setattr(decode, "SEQS", (64,))
    size = 2 * 3 * decode.KV_HEADS * 64 * decode.HEAD_DIM * 2
    monkeypatch.setattr(decode, "ROUND", size + 1)
    name = "attention/flash2_causal.py"
    monkeypatch.setattr(decode, "own", lambda caches: {name: attention})
    monkeypatch.setattr(
        decode,
        "peers",
        lambda seq: {
            "sdpa-efficient": lambda: kernels.grouped_rows(
                torch.nn.attention.SDPBackend.MATH
            )
        },
    )
    decode.decode(run, copy=float(size))
    assert not run.failures
    assert run.record["decode"][2] == {
        "kernel": "attention/flash2_causal.py",
        "dtype": "float32",
        "batch": 3,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "seq_k": 64,
        "seconds": 0.5,  # of two caches in turn
        "bytes": size,
        "bytes_per_second": 2 * size,
        "fraction_of_copy": 2.0,
        "launches": [{"a": 1}],
    }
    assert run.record["decode"][0]["seconds"] == 0.25  # size / 3, so four in turn


def test_window(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "SEQ", 64)
    monkeypatch.setattr(window, "WINDOWS", (16, 64))

    def seen(q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
        s = q @ k.mT * q.shape[-1] ** -0.5
        back = torch.arange(64)[:, None] - torch.arange(64)
        s = s.where((back >= 0) & (back < size), float("-inf"))
        return torch.softmax(s, dim=-1) @ v

    monkeypatch.setattr(
        window, "own", lambda size: {"attention/own.py": partial(seen, size=size)}
    )
    monkeypatch.setattr(
        window, "peers", lambda size: {"causal": lambda: partial(seen, size=64)}
    )
    window.window(run)
    assert run.record["window"][0] == {
        "kernel": "attention/own.py",
        "dtype": "float32",
        "head_dim": 128,
        "seq": 64,
        "window": 16,
        "batch": 1,
        "heads": 16,
        "seconds": 1.0,
        "launches": [{"a": 1}],
    }
    assert [e["window"] for e in run.record["window"]] == [16, 64, 64]
    # Without the window it is wrong, and a window of everything is none.
    assert [r["window"] for r in run.record["refusals"]] == [16]


def test_varlen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varlen, "BATCH", 4)
    monkeypatch.setattr(varlen, "LONGEST", 40)
    monkeypatch.setattr(varlen, "FILLS", (0.5, 1.0))
    seen = []

    def packed(q: Tensor, k: Tensor, v: Tensor, starts: Tensor, ends: Tensor) -> Any:
        assert starts is ends
        seen.append(starts.tolist())
        seqs = starts.diff().tolist()
        split = (x.transpose(0, 1)[None].split(seqs, dim=2) for x in (q, k, v))
        o = [attention(*part, causal=True)[0][0] for part in zip(*split, strict=True)]
        return torch.cat(o, dim=1).transpose(0, 1), None

    own = {
        "attention/varlen.py": packed,
        "attention/flash2_causal.py": partial(attention, causal=True),
    }
    monkeypatch.setattr(kernels, "published", lambda part, seq, causal: own)
    varlen.varlen(run)
    assert not run.failures
    assert seen[0] == [0, 10, 30, 60, 100]
    found = run.record["varlen"]
    assert [(e["kernel"], e["fill"]) for e in found] == [
        (name, fill) for fill in (0.5, 1.0) for name in own
    ]
    flops = 2 * 16 * 128 * (10**2 + 20**2 + 30**2 + 40**2)
    assert found[0]["flops_per_second"] == found[1]["flops_per_second"] / 2 == flops
    assert (found[0]["tokens"], found[2]["tokens"]) == (100, 160)


def test_lengths_fill_the_batch_as_they_say() -> None:
    for fill in varlen.FILLS:
        seqs = varlen.lengths(fill)
        assert seqs[-1] == varlen.LONGEST
        assert seqs == sorted(seqs)
        part = sum(seqs) / (len(seqs) * varlen.LONGEST)
        assert part == pytest.approx(fill, abs=0.04)


def test_memory(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SEQS", (16,))
    monkeypatch.setattr(memory, "peak", lambda call, qkv: call(*qkv)[0].nbytes)
    monkeypatch.setattr(memory, "calls", lambda qkv: kernels.published("memory", 16))
    memory.memory(run)
    assert run.record["memory"] == [
        {
            "kernel": "attention/flash2_causal.py",
            "dtype": "bfloat16",
            "head_dim": 128,
            "seq": 16,
            "bytes": 16 * 128 * 4,
        }
    ]


def test_every_flash_rung_tells_its_memory() -> None:
    torch.manual_seed(0)
    qkv = list(torch.randn(3, 1, 1, 64, 128))
    found = memory.calls(qkv)
    assert list(found) == [kernels.path(name) for name in kernels.NAMES["memory"]]
    for name, call in found.items():
        tolerance = 0.2 if "fp8" in name else 0.02
        check_rows(*qkv, False, first(call(*qkv)), tolerance=tolerance)


def test_a_failure_is_kept_and_leaves_the_record_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Run(run.path.parent, ENVIRONMENT, PARTS).finish() == 0
    before = run.path.read_bytes()
    broken = {"attention/flash2.py": refuse}
    monkeypatch.setattr(kernels, "published", lambda part, seq, causal: broken)
    monkeypatch.setattr(
        forward,
        "peers",
        lambda causal, seq: {
            "sdpa-flash": lambda: lambda *qkv: attention(*qkv, causal=causal)[0],
            "wrong": lambda: lambda q, k, v: q,
        },
    )
    forward.forward(run, matmul=1.0)
    assert run.finish() == 1
    said = capsys.readouterr().out
    assert "FAILED: forward attention/flash2.py head_dim=16 seq=32" in said
    assert "refused: forward wrong head_dim=16 seq=32 causal=False" in said
    assert "4 failures" in said
    assert run.path.read_bytes() == before
    kept = json.loads(run.incomplete.read_text())
    assert {entry["kernel"] for entry in kept["forward"]} == {"sdpa-flash"}
    assert len(kept["failures"]) == 4
    assert kept["refusals"][0]["reason"].startswith("Wrong: wrong by")


def test_memory_that_runs_out_is_no_refusal(run: Run) -> None:
    with run.attempt("forward", "sdpa-flash", peer=True, seq=1):
        raise torch.OutOfMemoryError("too much")
    assert run.failures == ["forward sdpa-flash seq=1: OutOfMemoryError: too much"]


def test_a_failure_while_timing_costs_one_shape(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "medians", refuse)
    forward.forward(run, matmul=1.0)
    assert len(run.failures) == 4
    assert run.record["forward"] == []


def old_record(tmp_path: Path, **changes: Any) -> None:
    run = Run(tmp_path, ENVIRONMENT, PARTS)
    run.record["forward"] = [{"kernel": "attention/flash2.py", "seconds": 1.0}]
    run.record["decode"] = [{"kernel": "sdpa-flash", "seconds": 1.0}]
    run.record["refusals"] = [{"part": "forward"}, {"part": "decode"}]
    run.record["ceilings"] = {"copy": 1.0, "matmul": 2.0}
    run.record |= changes
    timing.write(run.record, run.path)


def test_a_part_joins_the_record(tmp_path: Path) -> None:
    old_record(tmp_path)
    path = tmp_path / "attention.json"
    older = json.loads(path.read_text())
    del older["varlen"]  # from before there was such a part
    path.write_text(json.dumps(older))
    run = Run(tmp_path, ENVIRONMENT, ("decode",))
    assert run.record["varlen"] == []
    assert run.record["forward"] == [{"kernel": "attention/flash2.py", "seconds": 1.0}]
    assert run.record["decode"] == []
    assert run.record["refusals"] == [{"part": "forward"}]
    assert run.record["ceilings"] == {"copy": 1.0, "matmul": 2.0}
    assert run.record["manifest"] == hashes("forward") | hashes("decode")
    assert run.finish() == 0
    assert records.load_benchmark(run.path).stale(ROOT) == []


def test_a_part_does_not_join_what_does_not_agree(tmp_path: Path) -> None:
    old_record(tmp_path)
    other = ENVIRONMENT | {"driver": "1"}
    with pytest.raises(Disagree, match="another environment"):
        Run(tmp_path, other, ("decode",))
    known = hashes("forward") | hashes("decode")
    changed = hashes("forward").keys() - hashes("decode").keys()
    old_record(tmp_path, manifest=known | dict.fromkeys(changed, "0"))
    with pytest.raises(Disagree, match="forward was measured of another snippets/"):
        Run(tmp_path, ENVIRONMENT, ("decode",))
    # What is measured now may have changed.
    run = Run(tmp_path, ENVIRONMENT, ("forward",))
    assert run.record["decode"] == [{"kernel": "sdpa-flash", "seconds": 1.0}]
    # The whole benchmark asks for nothing.
    assert Run(tmp_path, other, PARTS).record["forward"] == []


@pytest.mark.parametrize("causal", [False, True])
def test_the_rough_check(causal: bool) -> None:
    q, k, v = torch.randn(3, 1, 2, 100, 16)
    right = attention(q, k, v, causal=causal)[0]
    check_rows(q, k, v, causal, right)
    check_rows(q[:, 1:], k[:, 1:], v[:, 1:], causal, right[0, 1:])  # [heads, ...]
    for wrong in (
        attention(q, k, v, causal=not causal)[0],
        right * 1.05,
        right.where(torch.arange(100)[:, None] < 99, 0.0),
        torch.full_like(right, float("nan")),
    ):
        with pytest.raises(Wrong, match="wrong by"):
            check_rows(q, k, v, causal, wrong)


def test_the_shapes_are_those_of_the_protocol() -> None:
    for head_dim in forward.HEAD_DIMS:
        assert forward.WIDTH % head_dim == 0
    assert [forward.TOKENS // seq for seq in forward.SEQS] == [32, 16, 8, 4, 2, 1, 0]
    assert forward.flops(2, 3, 8, 16, False) == 4 * 2 * 3 * 8 * 8 * 16
    assert forward.flops(2, 3, 8, 16, True) == 2 * 2 * 3 * 8 * 8 * 16
    largest = 2 * decode.BATCHES[-1] * decode.KV_HEADS * decode.SEQS[-1]
    assert largest * decode.HEAD_DIM * 2 <= 40e9


def test_the_kernels_of_each_part_take_its_shapes() -> None:
    for part in PARTS:
        found = kernels.published(part, 512)
        assert list(found) == [kernels.path(name) for name in kernels.NAMES[part]]
        causal = kernels.published(part, 512, causal=True)
        assert set(found) - set(causal) <= {kernels.path(n) for n in kernels.NOT_CAUSAL}
    long = kernels.published("forward", 32768, causal=True)
    assert "attention/flash2_causal.py" in long
    assert "attention/naive.py" not in long
    q, k, v = torch.randn(3, 1, 1, 40, 16)
    for causal in (False, True):
        for call in kernels.published("forward", 40, causal).values():
            check_rows(q, k, v, causal, first(call(q, k, v)))


def test_the_decoding_kernels_take_a_cache_and_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decode, "HEAD_DIM", 16)
    caches = torch.randn(2, 2, 3, decode.KV_HEADS, 64, 16)
    q = torch.randn(3, decode.HEADS, 1, 16)
    calls = decode.own(caches)
    assert list(calls) == [kernels.path(name) for name in kernels.NAMES["decode"]]
    for call in calls.values():
        for k, v in caches:
            check_rows(q, k, v, False, first(call(q, k, v)))


def test_what_is_compiled_beforehand_can_be_sent_to_a_process() -> None:
    every = list(warm.tasks(PARTS))
    assert {name for name, _ in every} >= {"flex_attention", *kernels.BATCHED}
    assert list(warm.tasks(())) == []
    pickle.dumps(every)


def test_flash_attention_3_is_asked_if_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernels.fa3() == {}
    (tmp_path / "fa3_fwd_interface.py").write_text(
        "def flash_attn_func(q, k, v, causal=False):\n"
        "    assert q.shape == (2, 40, 3, 16)  # seq before heads\n"
        "    return q * (2 if causal else 1)\n"
    )
    info = tmp_path / "fa3_fwd-0.0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: fa3-fwd\nVersion: 0.0.3\n")
    monkeypatch.syspath_prepend(tmp_path)
    q = torch.randn(2, 3, 40, 16)
    (call,) = kernels.fa3(causal=True).values()
    assert torch.equal(call(q, q, q), 2 * q)
    assert kernels.versions()["fa3-fwd"] == "0.0.3"


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
