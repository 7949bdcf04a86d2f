"""The forward pass, of batches of heads."""

from benchmarks import peers
from benchmarks.part import Part, Shape, Trial
from benchmarks.parts.attention import compare, protocol

CAUSAL = (
    "attention/flash2_causal.py",
    "attention/flash2_tuned.py",
    "attention/flash2_descriptors.py",
    "attention/flash2_persistent.py",
)
NAIVE, NOT_CAUSAL = "attention/naive.py", "attention/flash2.py"
LONGEST = 8192  # longer, the score matrices of the definition do not fit


def trial(shape: Shape) -> Trial:
    """All kernels that take the shape."""
    names = (NAIVE,) if shape.seq <= LONGEST else ()
    names += CAUSAL if shape.causal else (NOT_CAUSAL, *CAUSAL)
    return compare(shape, names, peers.ATTENTION)


PART = Part(
    own=(NAIVE, NOT_CAUSAL, *CAUSAL),
    shapes=protocol,
    trial=trial,
    compiled=("flex_attention",),
    ceiling="matmul",
    against={
        "times_flash": "sdpa-flash",
        "times_flex": "flex_attention",
        "times_cudnn": "sdpa-cudnn",
    },
)
