"""Sequences of different lengths: packed, against a batch that is padded."""

from typing import Any

from benchmarks import peers
from benchmarks.calls import Inputs
from benchmarks.part import Shape, published
from benchmarks.parts import attention

PACKED, PADDED = "attention/varlen.py", "attention/flash2_causal.py"
FACTS = {"dtype": "bfloat16", "head_dim": 128, "longest": 4096, "heads": 16}
FILLS = (0.25, 0.5, 0.75, 1.0)  # tokens, as a fraction of the padded batch


def lengths(shape: Shape) -> list[int]:
    """Lengths that rise to the longest, about `fill` of it on average."""
    # The integral of u^p from 0 to 1 is 1 / (p + 1).
    power, batch = 1 / shape.fill - 1, shape.batch
    return [round(shape.longest * ((i + 1) / batch) ** power) for i in range(batch)]


def padded(shape: Shape) -> list[Inputs]:
    """A batch with zeros behind each sequence."""
    (inputs,) = attention.normal(Shape(**vars(shape), seq=shape.longest, causal=True))
    for name in "qkv":
        for sequence, length in zip(inputs[name], lengths(shape), strict=True):
            sequence[:, length:] = 0
    return [inputs | {"lengths": lengths(shape)}]


def check(name: str, inputs: Inputs, result: Any) -> None:
    """Compare the last sequence, which is the longest."""
    length, o = inputs["lengths"][-1], attention.output(result)
    o = o[-1, :, :length] if name == PADDED else o[-length:].transpose(0, 1)
    last = {x: inputs[x][-1:, :, :length] for x in "qkv"}
    attention.check(name, last | {"causal": True}, o)


def facts(name: str, shape: Shape) -> dict[str, int]:
    """FLOPs between real tokens."""
    seqs = lengths(shape)
    flops = sum(2 * shape.heads * seq**2 * shape.head_dim for seq in seqs)
    return {"tokens": sum(seqs), "flops": flops}


PART = attention.attention(
    shapes=[Shape(**FACTS, fill=fill, batch=16) for fill in FILLS],
    inputs=padded,
    own=published(PACKED, PADDED),
    peers={"fa3-fwd": peers.fa3_varlen},
    check=check,
    facts=facts,
)
