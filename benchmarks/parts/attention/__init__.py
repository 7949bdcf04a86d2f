"""What the lists of attention share.

FLOPs are those of the two matrix products, half of them under a causal mask, whatever a
kernel computes.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from benchmarks import timing
from benchmarks.part import Shape, near

TOKENS = 16384  # batch * seq; a longer sequence is a batch of one
WIDTH = 2048  # heads * head_dim
HEAD_DIMS = (64, 128, 256)
SEQS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


def protocol() -> Iterator[Shape]:
    """The shapes of the forward pass: each length has the same number of tokens."""
    for head_dim, causal, seq in product(HEAD_DIMS, (False, True), SEQS):
        yield Shape(
            dtype="bfloat16",
            head_dim=head_dim,
            seq=seq,
            causal=causal,
            batch=max(1, TOKENS // seq),
            heads=WIDTH // head_dim,
        )


def one_head(head_dim: int, seq: int) -> Shape:
    """A single head, which the first rungs take."""
    facts = {"dtype": "bfloat16", "head_dim": head_dim, "seq": seq, "causal": False}
    return Shape(**facts, batch=1, heads=1)


def normal(shape: Shape) -> list[torch.Tensor]:
    """Fresh q, k and v."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    return [timing.normal(*size, dtype=shape.dtype) for _ in range(3)]


def flops(shape: Shape) -> dict[str, int]:
    """Of the two products; half of them under a causal mask."""
    whole = 4 * shape.batch * shape.heads * shape.seq**2 * shape.head_dim
    return {"flops": whole // (2 if shape.causal else 1)}


def first(result: Any) -> torch.Tensor:
    """o, of a kernel that returns o or (o, lse)."""
    return result[0] if isinstance(result, tuple) else result


def check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    result: Any,
    *,
    causal: bool = False,
    window: int | None = None,
    tolerance: float = 0.02,
) -> None:
    """Compare some rows of the last head with float64. Raises Wrong."""
    seq_q, head_dim = q.shape[-2:]
    rows = torch.arange(0, seq_q, max(1, seq_q // 16), device=q.device) + seq_q - 1
    rows %= seq_q
    last_k, last_v = (x[-1, -1].double() for x in (k, v))
    s = q[-1, -1][rows].double() @ last_k.T * head_dim**-0.5
    if causal:
        back = rows[:, None] - torch.arange(k.shape[-2], device=q.device)
        s = s.where((back >= 0) & (back < (window or seq_q)), float("-inf"))
    expected = torch.softmax(s, dim=-1) @ last_v
    found = first(result).reshape(q.shape)[-1, -1][rows].double()
    near(found, expected, tolerance)
