"""The forward pass in fp8. Quantising, and transposing v, are done beforehand."""

import importlib
from functools import partial
from typing import Any

import torch

from benchmarks.attention import kernels
from benchmarks.attention.forward import (
    HEAD_DIMS,
    SEQS,
    TOKENS,
    TUNED_AT,
    WIDTH,
    flops,
    inputs,
    tflops,
)
from benchmarks.attention.measure import Maker, check_rows, measure
from benchmarks.attention.run import Run

BF16 = kernels.path("flash2_descriptors")  # the same kernel before fp8


class Quantised:
    """q, k and v [batch, heads, seq, head_dim] in fp8, and as what they stand for."""

    def __init__(self, qkv: list[torch.Tensor]) -> None:
        quantise = importlib.import_module("snippets.attention.flash2_fp8").quantise
        found = [quantise(x) for x in qkv]
        self.qkv = [x for x, _ in found]
        self.scales = [scale for _, scale in found]
        self.columns = self.qkv[2].mT.contiguous()
        self.exact = [x.float() * scale[..., None, None] for x, scale in found]

    def own(self, causal: bool) -> dict[str, kernels.Attention]:
        """The published kernels, which take v transposed."""
        found = kernels.published("fp8", self.qkv[0].shape[2], causal)
        return {
            name: lambda q, k, v, call=call: call(q, k, self.columns, *self.scales)
            for name, call in found.items()
        }

    def peers(self, causal: bool) -> dict[str, Maker]:
        """FlashAttention-3 is the peer that has fp8."""
        names = ("q_descale", "k_descale", "v_descale")
        descales = dict(zip(names, self.scales, strict=True))
        found = kernels.fa3(causal=causal, **descales)
        return {name: partial(lambda call: call, call) for name, call in found.items()}


def fp8(run: Run, matmul: float) -> None:
    """Every shape of the part `fp8`: those of the part `forward`."""
    for head_dim in HEAD_DIMS:
        for causal in (False, True):
            for seq in sorted(SEQS, key=lambda seq: seq != TUNED_AT):
                batch, heads = max(1, TOKENS // seq), WIDTH // head_dim
                given = Quantised(inputs(batch, heads, seq, head_dim))
                shape = {"head_dim": head_dim, "seq": seq, "causal": causal}
                check = partial(check_rows, *given.exact, causal, tolerance=0.2)
                entries = measure(
                    run,
                    "fp8",
                    shape | {"batch": batch, "heads": heads},
                    given.own(causal),
                    given.peers(causal),
                    given.qkv,
                    check,
                )
                count = flops(batch, heads, seq, head_dim, causal)
                for entry in entries:
                    entry["flops"] = count
                    entry["flops_per_second"] = count / entry["seconds"]
                    entry["fraction_of_matmul"] = entry["flops_per_second"] / matmul
                    for bf16 in same(run, {"kernel": BF16} | shape):
                        entry["times_bf16"] = bf16["seconds"] / entry["seconds"]
                run.add("fp8", entries, tflops)
    run.record["fp8"].sort(key=lambda e: (e["head_dim"], e["causal"], e["seq"]))


def same(run: Run, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of the part `forward` with these values."""
    return [e for e in run.record["forward"] if wanted.items() <= e.items()]
