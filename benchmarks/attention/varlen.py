"""Sequences of different lengths: packed, against a batch that is padded."""

import itertools
from functools import partial

import torch

from benchmarks import timing
from benchmarks.attention import kernels
from benchmarks.attention.measure import Maker, check_rows, first, measure
from benchmarks.attention.run import Run

HEADS, HEAD_DIM = 16, 128
BATCH, LONGEST = 16, 4096
FILLS = (0.25, 0.5, 0.75, 1.0)  # tokens, as a fraction of the padded batch
PADDED = "flash2_causal"


def lengths(fill: float) -> list[int]:
    """Lengths that rise to LONGEST, about `fill` of it on average."""
    # The integral of u^p from 0 to 1 is 1 / (p + 1).
    power = 1 / fill - 1
    return [round(LONGEST * ((i + 1) / BATCH) ** power) for i in range(BATCH)]


def kernel(name: str, seqs: list[int], qkv: list[torch.Tensor]) -> kernels.Attention:
    """A published kernel on packed tensors, which returns the last sequence."""
    attention = kernels.published("varlen", LONGEST, causal=True)[kernels.path(name)]
    if name == PADDED:
        batch = [padded(x, seqs) for x in qkv]
        return lambda *packed: first(attention(*batch))[-1:]
    ends = boundaries(seqs, qkv[0].device)
    return lambda *packed: last(first(attention(*packed, ends, ends)), seqs)


def fa3(seqs: list[int], device: torch.device) -> kernels.Attention:
    """FlashAttention-3 on packed tensors."""
    attention = kernels.fa3_module().flash_attn_varlen_func
    ends, longest = boundaries(seqs, device), max(seqs)
    shapes = (ends, ends, longest, longest)
    return lambda *packed: last(attention(*packed, *shapes, causal=True), seqs)


def boundaries(seqs: list[int], device: torch.device) -> torch.Tensor:
    """Where each sequence begins, and where the last one ends."""
    ends = itertools.accumulate(seqs, initial=0)
    return torch.tensor(list(ends), dtype=torch.int32, device=device)


def padded(x: torch.Tensor, seqs: list[int]) -> torch.Tensor:
    """[batch, heads, longest, head_dim] of packed rows, and zeros behind each."""
    parts = x.split(seqs)
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).transpose(1, 2)


def last(o: torch.Tensor, seqs: list[int]) -> torch.Tensor:
    """[1, heads, seq, head_dim] of the last sequence."""
    return o[-seqs[-1] :].transpose(0, 1)[None]


def varlen(run: Run) -> None:
    """Every shape of the part `varlen`."""
    for fill in FILLS:
        seqs = lengths(fill)
        rows = sum(seqs) * HEADS
        qkv = [
            timing.inputs(rows, HEAD_DIM, torch.bfloat16).view(-1, HEADS, HEAD_DIM)
            for _ in range(3)
        ]
        shape = {"head_dim": HEAD_DIM, "longest": LONGEST, "fill": fill}
        shape |= {"batch": BATCH, "heads": HEADS, "tokens": sum(seqs)}
        own = {
            kernels.path(name): kernel(name, seqs, qkv)
            for name in kernels.NAMES["varlen"]
        }
        peers: dict[str, Maker] = {}
        if kernels.fa3_module():
            peers["fa3-fwd"] = partial(fa3, seqs, qkv[0].device)
        check = partial(check_rows, *(last(x, seqs) for x in qkv), True)
        entries = measure(run, "varlen", shape, own, peers, qkv, check)
        count = sum(2 * HEADS * seq**2 * HEAD_DIM for seq in seqs)
        for entry in entries:
            entry["flops"] = count
            entry["flops_per_second"] = count / entry["seconds"]
        run.add("varlen", entries, lambda e: f"{e['flops_per_second'] / 1e12:.0f}")
