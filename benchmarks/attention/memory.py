"""Memory: the peak of what one call allocates, its result included."""

from typing import Any

import torch

from benchmarks.attention import kernels
from benchmarks.attention.forward import inputs
from benchmarks.attention.fp8 import Quantised
from benchmarks.attention.run import Run
from benchmarks.attention.varlen import boundaries

HEAD_DIM = 128
SEQS = tuple(2**n for n in range(9, 18))


def peak(call: kernels.Attention, qkv: list[torch.Tensor]) -> int:
    """Bytes that the second call has allocated at most: the first may tune itself."""
    call(*qkv)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call(*qkv)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def calls(qkv: list[torch.Tensor]) -> dict[str, kernels.Attention]:
    """The published kernels, made to take q, k and v [1, 1, seq, head_dim] in bf16."""
    found = kernels.published("memory", qkv[0].shape[2])
    packed, fp8 = kernels.path("varlen"), kernels.path("flash2_fp8")
    rows = [x[0].transpose(0, 1) for x in qkv]
    ends = boundaries([qkv[0].shape[2]], qkv[0].device)
    varlen, given = found[packed], Quantised(qkv)
    quantised = given.own(causal=False)[fp8]
    return found | {
        packed: lambda q, k, v: varlen(*rows, ends, ends),
        fp8: lambda q, k, v: quantised(*given.qkv),
    }


def memory(run: Run) -> None:
    """Every shape of the part `memory`: one head, so that every rung takes part."""
    for seq in SEQS:
        qkv = inputs(1, 1, seq, HEAD_DIM)
        shape = {"head_dim": HEAD_DIM, "seq": seq}
        entries = []
        for name, call in calls(qkv).items():
            with run.attempt("memory", name, False, **shape):
                entries.append(entry(name, shape, peak(call, qkv)))
        run.add("memory", entries, lambda entry: f"{entry['bytes'] / 1e6:.3g} MB")
        torch.cuda.empty_cache()


def entry(kernel: str, shape: dict[str, int], size: int) -> dict[str, Any]:
    """One entry of the record."""
    dtype = "float8_e4m3fn" if kernel.endswith("fp8.py") else "bfloat16"
    return {"kernel": kernel, "dtype": dtype, **shape, "bytes": size}
