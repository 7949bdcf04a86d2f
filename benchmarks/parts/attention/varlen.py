"""Sequences of different lengths: packed, against a batch that is padded."""

from collections.abc import Iterator
from functools import partial

from benchmarks import peers
from benchmarks.calls import boundaries, pack
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, first, normal

PACKED, PADDED = "attention/varlen.py", "attention/flash2_causal.py"
FILLS = (0.25, 0.5, 0.75, 1.0)  # tokens, as a fraction of the padded batch


def shapes() -> Iterator[Shape]:
    """Batches that are more and more full."""
    facts = {"dtype": "bfloat16", "head_dim": 128, "longest": 4096, "heads": 16}
    for fill in FILLS:
        shape = Shape(**facts, fill=fill, batch=16)
        shape.tokens = sum(lengths(shape))
        yield shape


def lengths(shape: Shape) -> list[int]:
    """Lengths that rise to the longest, about `fill` of it on average."""
    # The integral of u^p from 0 to 1 is 1 / (p + 1).
    power, batch = 1 / shape.fill - 1, shape.batch
    return [round(shape.longest * ((i + 1) / batch) ** power) for i in range(batch)]


def trial(shape: Shape) -> Trial:
    """The packed sequences, and the batch with zeros behind each of them."""
    seqs = lengths(shape)
    qkv = normal(Shape(seq=shape.longest, **vars(shape)))
    for x in qkv:
        for sequence, length in zip(x, seqs, strict=True):
            sequence[:, length:] = 0
    packed, starts = [pack(x, seqs) for x in qkv], boundaries(qkv[0], seqs)
    last = [x[-1:, :, : seqs[-1]] for x in qkv]

    def right(name: str, result: object) -> None:
        o = first(result)
        o = o[-1, :, : seqs[-1]] if name == PADDED else o[-seqs[-1] :].transpose(0, 1)
        check(*last, o, causal=True)

    return Trial(
        own=published([PACKED], *qkv, lengths=seqs, causal=True)
        | published([PADDED], *qkv, causal=True),
        peers={"fa3-fwd": partial(peers.fa3_varlen, *packed, starts, max(seqs))},
        check=right,
        work={"flops": sum(2 * shape.heads * n**2 * shape.head_dim for n in seqs)},
    )


PART = Part(own=(PACKED, PADDED), shapes=shapes, trial=trial)
