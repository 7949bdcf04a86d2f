"""The forward pass: batches of heads, and one head for the rungs that take no more."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from benchmarks import timing
from benchmarks.attention import kernels
from benchmarks.attention.measure import Maker, check_rows, measure
from benchmarks.attention.run import Run

TOKENS = 16384  # batch * seq; a longer sequence is a batch of one
WIDTH = 2048  # heads * head_dim
HEAD_DIMS = (64, 128, 256)
HEAD_DIMS_OF_ONE = (64, 128)
SEQS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
# The length at which kernels tune themselves, if they do: it is measured first.
TUNED_AT = 4096
# The peers that every kernel's speed is divided by, for the pages.
AGAINST = {
    "times_flash": "sdpa-flash",
    "times_flex": "flex_attention",
    "times_cudnn": "sdpa-cudnn",
}


def inputs(batch: int, heads: int, seq: int, head_dim: int) -> list[torch.Tensor]:
    """q, k and v [batch, heads, seq, head_dim] of fresh normal values."""
    rows = batch * heads * seq
    return [
        timing.inputs(rows, head_dim, torch.bfloat16).view(batch, heads, seq, head_dim)
        for _ in range(3)
    ]


def flops(batch: int, heads: int, seq: int, head_dim: int, causal: bool) -> int:
    """Operations of the two matrix products; half of them if causal."""
    return 4 * batch * heads * seq**2 * head_dim // (2 if causal else 1)


def peers(causal: bool, seq: int) -> dict[str, Maker]:
    """How to make each peer; making one may fail too."""
    made: dict[str, Maker] = {
        name: partial(kernels.sdpa, backend, is_causal=causal)
        for name, backend in kernels.BACKENDS.items()
    }
    made["flex_attention"] = partial(kernels.flex, causal, seq)
    found = kernels.fa3(causal=causal).items()
    return made | {name: lambda call=call: call for name, call in found}


def measured(
    run: Run,
    part: str,
    own: Mapping[str, kernels.Attention],
    others: Mapping[str, Maker],
    qkv: list[torch.Tensor],
    causal: bool,
) -> list[dict[str, Any]]:
    """The entries of one shape, with their FLOPs."""
    batch, heads, seq, head_dim = qkv[0].shape
    shape = {"head_dim": head_dim, "seq": seq, "causal": causal}
    shape |= {"batch": batch, "heads": heads}
    count = flops(batch, heads, seq, head_dim, causal)
    check = partial(check_rows, *qkv, causal)
    found = measure(run, part, shape, own, others, qkv, check)
    return [
        entry | {"flops": count, "flops_per_second": count / entry["seconds"]}
        for entry in found
    ]


def forward(run: Run, matmul: float) -> None:
    """Every shape of the part `forward`."""
    for head_dim in HEAD_DIMS:
        for causal in (False, True):
            for seq in sorted(SEQS, key=lambda seq: seq != TUNED_AT):
                batch, heads = max(1, TOKENS // seq), WIDTH // head_dim
                qkv = inputs(batch, heads, seq, head_dim)
                own = kernels.published("forward", seq, causal)
                others = peers(causal, seq)
                entries = measured(run, "forward", own, others, qkv, causal)
                times = {entry["kernel"]: entry["seconds"] for entry in entries}
                for entry in entries:
                    fraction = entry["flops_per_second"] / matmul
                    entry["fraction_of_matmul"] = fraction
                    for key, peer in AGAINST.items():
                        if peer in times:
                            entry[key] = times[peer] / entry["seconds"]
                run.add("forward", entries, tflops)
    run.record["forward"].sort(key=lambda e: (e["head_dim"], e["causal"], e["seq"]))


def head(run: Run) -> None:
    """Every shape of the part `head`: one head."""
    flash = kernels.BACKENDS["sdpa-flash"]
    for head_dim in HEAD_DIMS_OF_ONE:
        for seq in SEQS:
            own = kernels.published("head", seq)
            others = {"sdpa-flash": partial(kernels.sdpa, flash)}
            qkv = inputs(1, 1, seq, head_dim)
            entries = measured(run, "head", own, others, qkv, False)
            run.add("head", entries, tflops)


def tflops(entry: dict[str, Any]) -> str:
    """What the progress says of a measurement."""
    return f"{entry['flops_per_second'] / 1e12:.0f}"
