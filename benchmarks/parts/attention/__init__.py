"""What the lists of attention share.

FLOPs are those of the two matrix products, half of them under a causal mask, whatever a
kernel computes.
"""

from functools import partial
from itertools import product
from typing import Any

import torch

from benchmarks import timing
from benchmarks.calls import Inputs
from benchmarks.part import Kernel, Part, Shape, near

TOKENS = 16384  # batch * seq; a longer sequence is a batch of one
WIDTH = 2048  # heads * head_dim
HEAD_DIMS = (64, 128, 256)
SEQS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


def shape(head_dim: int, seq: int, batch: int, heads: int, causal: bool) -> Shape:
    """In the order in which the record has it."""
    facts = {"head_dim": head_dim, "seq": seq, "causal": causal}
    return Shape(dtype="bfloat16", **facts, batch=batch, heads=heads)


# The shapes of the forward pass: each length has the same number of tokens.
PROTOCOL = [
    shape(head_dim, seq, max(1, TOKENS // seq), WIDTH // head_dim, causal)
    for head_dim, causal, seq in product(HEAD_DIMS, (False, True), SEQS)
]
# Two of them, without a mask and with one, for lists of many kernels.
TYPICAL = [each for each in PROTOCOL if (each.head_dim, each.seq) == (128, 4096)]
# The first rungs, which take a single head, and one of them with larger tiles.
ONE_HEAD = "attention/flash1.py", "attention/flash2_single_head.py"
LARGE = {
    "flash1 + tiles of 128": Kernel(
        "attention/flash1.py",
        {"num_warps=4 if block_m * head_dim <= 2**14 else 8": "num_warps=8"},
        {"block_m": 128, "block_n": 128},
    )
}


def normal(shape: Shape) -> list[Inputs]:
    """Fresh q, k and v, and how much of k a query sees."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    mask = {"window": shape.window} if hasattr(shape, "window") else {}
    qkv = {name: timing.normal(*size, dtype=shape.dtype) for name in "qkv"}
    return [qkv | {"causal": shape.causal} | mask]


def flops(name: str, shape: Shape) -> dict[str, Any]:
    """Of the two products; half of them under a causal mask."""
    whole = 4 * shape.batch * shape.heads * shape.seq**2 * shape.head_dim
    return {"flops": whole // (2 if shape.causal else 1)}


def output(result: Any) -> torch.Tensor:
    """o, of a kernel that returns o or (o, lse)."""
    return result[0] if isinstance(result, tuple) else result


def check(name: str, inputs: Inputs, result: Any, tolerance: float = 0.02) -> None:
    """Compare some rows of the last head with float64.

    Raises:
        Wrong: they differ.
    """
    q, k, v = (inputs[x][-1, -1] for x in "qkv")
    seq_q, head_dim = q.shape
    rows = torch.arange(0, seq_q, max(1, seq_q // 16), device=q.device) + seq_q - 1
    rows %= seq_q
    s = q[rows].double() @ k.double().T * head_dim**-0.5
    if inputs.get("causal"):
        back = rows[:, None] - torch.arange(len(k), device=q.device)
        window = inputs.get("window", seq_q)
        s = s.where((back >= 0) & (back < window), float("-inf"))
    expected = torch.softmax(s, dim=-1) @ v.double()
    found = output(result).reshape(-1, seq_q, head_dim)[-1][rows].double()
    near(found, expected, tolerance)


attention = partial(Part, inputs=normal, check=check, facts=flops)
