"""The forward pass in fp8 on Hopper. Quantising, and transposing V, is done beforehand.

FlashAttention-3 takes v by rows and transposes it in its kernel.
"""

from functools import partial
from typing import Any

from benchmarks.part import Shape, published
from benchmarks.parts.attention import PROTOCOL, attention, check, flops
from benchmarks.parts.attention.fp8 import fa3

OWN = "hopper/gluon_fp8.py"
TRITON = "attention/flash2_fp8.py"
BF16 = "hopper/gluon_persistent.py"  # the same kernel before fp8


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """The FLOPs, and in which dtype."""
    return flops(name, shape) | ({} if name == BF16 else {"dtype": "float8_e4m3fn"})


PART = attention(
    shapes=[each for each in PROTOCOL if 1024 <= each.seq <= 16384],
    own=published(OWN, TRITON, BF16),
    peers={"fa3-fwd": fa3},
    check=partial(check, tolerance=0.2),
    facts=facts,
    ceiling="matmul",
    against={"times_triton": TRITON, "times_fa3": "fa3-fwd"},
)
