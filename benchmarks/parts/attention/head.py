"""One head, for the rungs that take no more, beside the rungs next to them."""

from functools import partial
from itertools import product, starmap

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import SEQS, check, flops, normal, one_head

SNIPPETS = (
    "attention/naive.py",
    "attention/flash1.py",
    "attention/flash2_single_head.py",
    "attention/flash2.py",
)


def trial(shape: Shape) -> Trial:
    """The rungs, and what PyTorch makes of so little."""
    qkv = normal(shape)
    return Trial(
        own=published(SNIPPETS, *qkv),
        peers={"sdpa-flash": partial(peers.sdpa, "sdpa-flash", *qkv)},
        check=lambda name, result: check(*qkv, result),
        work=flops(shape),
    )


PART = Part(
    snippets=SNIPPETS,
    shapes=lambda: starmap(one_head, product((64, 128), SEQS)),
    trial=trial,
)
