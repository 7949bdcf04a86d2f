"""The backward pass of different lengths: packed, against a batch that is padded."""

from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import calls, peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape
from benchmarks.parts.backward import Gradients, derived, normal, ours
from benchmarks.parts.backward import check as check_a_batch

PACKED = "backward/varlen_backward.py"
FACTS = {"dtype": "bfloat16", "head_dim": 128, "longest": 4096, "heads": 16}
FILLS = (0.25, 0.5, 0.75, 1.0)  # tokens, as a fraction of the padded batch


def lengths(shape: Shape) -> list[int]:
    """Lengths that rise to the longest, about `fill` of it on average."""
    # The integral of u^p from 0 to 1 is 1 / (p + 1).
    power, batch = 1 / shape.fill - 1, shape.batch
    return [round(shape.longest * ((i + 1) / batch) ** power) for i in range(batch)]


def padded(shape: Shape) -> list[Inputs]:
    """A batch; do is 0 behind each sequence, so that nothing comes of what is there."""
    (inputs,) = normal(Shape(**vars(shape), seq=shape.longest, causal=True))
    for sequence, length in zip(inputs["do"], lengths(shape), strict=True):
        sequence[:, length:] = 0
    return [inputs | {"lengths": lengths(shape)}]


@dataclass(frozen=True)
class Packed(Gradients):
    """A kernel that gets the sequences without what is behind them."""

    def call(self, inputs: Inputs) -> Call:
        """Its call."""
        seqs, given = inputs["lengths"], dict(inputs)
        for name in ("q", "k", "v", "o", "do"):
            given[name] = calls.pack(inputs[name], seqs)
        rows = zip(inputs["lse"], seqs, strict=True)
        given["lse"] = torch.cat([lse[:, :length] for lse, length in rows], dim=1)
        ends = calls.boundaries(inputs["q"], seqs)
        return super().call(given | {"cu_seqlens_q": ends, "cu_seqlens_k": ends})


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare the last sequence, which is the longest."""
    if name == PACKED:
        length = inputs["lengths"][-1]
        found = [dx[-length:].transpose(0, 1)[None] for dx in found]
    check_a_batch(name, inputs, found)


def facts(name: str, shape: Shape) -> dict[str, int]:
    """FLOPs between real tokens: half of five products."""
    seqs = lengths(shape)
    flops = sum(5 * shape.heads * seq**2 * shape.head_dim for seq in seqs)
    return {"tokens": sum(seqs), "flops": flops}


PART = Part(
    shapes=[Shape(**FACTS, fill=fill, batch=16) for fill in FILLS],
    inputs=padded,
    own={PACKED: Packed(PACKED)} | ours("backward/causal_backward.py"),
    peers={"sdpa-flash": derived(peers.sdpa_flash)},
    check=check,
    facts=facts,
    measure=timing.one_by_one,
)
