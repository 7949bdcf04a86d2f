"""The sliding window: what a narrower one saves, on one long sequence."""

from functools import partial

from benchmarks.attention import kernels
from benchmarks.attention.forward import WIDTH, inputs
from benchmarks.attention.measure import Maker, check_rows, measure
from benchmarks.attention.run import Run

HEAD_DIM = 128
SEQ = 16384
WINDOWS = (256, 1024, 4096, 16384)


def own(size: int) -> dict[str, kernels.Attention]:
    """The published kernel with its window."""
    found = kernels.published("window", SEQ, causal=True)
    return {name: partial(call, window=size) for name, call in found.items()}


def peers(size: int) -> dict[str, Maker]:
    """FlexAttention is the peer that has windows."""
    return {"flex_attention": partial(kernels.flex, True, SEQ, window=size)}


def window(run: Run) -> None:
    """Every shape of the part `window`. The widest window is the causal mask."""
    qkv = inputs(1, WIDTH // HEAD_DIM, SEQ, HEAD_DIM)
    for size in WINDOWS:
        shape = {"head_dim": HEAD_DIM, "seq": SEQ, "window": size}
        shape |= {"batch": 1, "heads": qkv[0].shape[1]}
        check = partial(check_rows, *qkv, True, window=size)
        entries = measure(run, "window", shape, own(size), peers(size), qkv, check)
        run.add("window", entries, lambda entry: f"{entry['seconds'] * 1e6:.0f} us")
