"""Memory: the peak of what one call allocates, its result included."""

from typing import Any

import torch

from benchmarks.attention import kernels
from benchmarks.attention.forward import inputs
from benchmarks.attention.run import Run

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


def memory(run: Run) -> None:
    """Every shape of the part `memory`: one head, so that every rung takes part."""
    for seq in SEQS:
        qkv = inputs(1, 1, seq, HEAD_DIM)
        shape = {"head_dim": HEAD_DIM, "seq": seq}
        entries = []
        for name, call in kernels.published("memory", seq).items():
            with run.attempt("memory", name, False, **shape):
                entries.append(entry(name, shape, peak(call, qkv)))
        run.add("memory", entries, lambda entry: f"{entry['bytes'] / 1e6:.3g} MB")
        torch.cuda.empty_cache()


def entry(kernel: str, shape: dict[str, int], size: int) -> dict[str, Any]:
    """One entry of the record."""
    return {"kernel": kernel, "dtype": "bfloat16", **shape, "bytes": size}
