"""Attention's forward pass in Gluon, against what else runs on Hopper.

FLOPs are those of the two matrix products, half of them under a causal mask, whatever a
kernel computes. Each length has the same number of tokens.
"""

from itertools import product
from typing import Any

import torch

from benchmarks import peers, timing
from benchmarks.calls import Inputs
from benchmarks.part import Part, Shape, near, published

TOKENS, WIDTH = 16384, 2048  # batch * seq, and heads * head_dim
SEQS = (1024, 2048, 4096, 8192, 16384)


def shape(head_dim: int, causal: bool, seq: int) -> Shape:
    """In the order in which the record has it."""
    facts = {"head_dim": head_dim, "seq": seq, "causal": causal}
    lead = {"batch": TOKENS // seq, "heads": WIDTH // head_dim}
    return Shape(dtype="bfloat16", **facts, **lead)


def normal(shape: Shape) -> list[Inputs]:
    """Fresh q, k and v."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    qkv = {name: timing.normal(*size, dtype=shape.dtype) for name in "qkv"}
    return [qkv | {"causal": shape.causal}]


def flops(name: str, shape: Shape) -> dict[str, Any]:
    """Of the two products; half of them under a causal mask."""
    whole = 4 * shape.batch * shape.heads * shape.seq**2 * shape.head_dim
    return {"flops": whole // (2 if shape.causal else 1)}


def check(name: str, inputs: Inputs, result: Any) -> None:
    """Compare some rows of the last head with float64."""
    q, k, v = (inputs[x][-1, -1] for x in "qkv")
    rows = torch.arange(0, len(q), max(1, len(q) // 16), device=q.device)
    s = q[rows].double() @ k.double().T * q.shape[1] ** -0.5
    if inputs["causal"]:
        s = s.where(torch.arange(len(k), device=q.device) <= rows[:, None], -torch.inf)
    o = result[0] if isinstance(result, tuple) else result
    near(o[-1, -1][rows].double(), torch.softmax(s, dim=-1) @ v.double())


PART = Part(
    shapes=[shape(*each) for each in product((64, 128, 256), (False, True), SEQS)],
    inputs=normal,
    own=published("attention/flash2_descriptors.py", "hopper/gluon_causal.py")
    | published(
        "hopper/gluon_flash.py",
        "hopper/gluon_specialised.py",
        "hopper/gluon_overlapped.py",
        takes=lambda shape: not shape.causal,
    ),
    peers={
        "sdpa-flash": peers.sdpa_flash,
        "sdpa-cudnn": peers.sdpa_cudnn,
        "fa3-fwd": peers.fa3,
    },
    check=check,
    facts=flops,
    ceiling="matmul",
    against={"times_cudnn": "sdpa-cudnn", "times_fa3": "fa3-fwd"},
)
