"""What the lists of attention share.

FLOPs are those of the two matrix products, half of them under a causal mask, whatever a
kernel computes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import torch

from benchmarks import peers, timing
from benchmarks.calls import Call, call, load
from benchmarks.part import Shape, Trial, near, published

TOKENS = 16384  # batch * seq; a longer sequence is a batch of one
WIDTH = 2048  # heads * head_dim
HEAD_DIMS = (64, 128, 256)
SEQS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True)
class Variant:
    """A snippet with changes in its text, and with options."""

    of: str
    changes: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def call(self, *qkv: torch.Tensor, **mask: Any) -> Call:
        """Its call."""
        return call(load(self.of, self.changes), *qkv, **mask, **self.options)


ONE_HEAD = FLASH1, _ = "attention/flash1.py", "attention/flash2_single_head.py"
LARGE = {
    "flash1 + tiles of 128": Variant(
        FLASH1,
        {"num_warps=4 if block_m * head_dim <= 2**14 else 8": "num_warps=8"},
        {"block_m": 128, "block_n": 128},
    )
}


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


def typical() -> list[Shape]:
    """Two of them, without a mask and with one, for lists of many kernels."""
    return [s for s in protocol() if (s.head_dim, s.seq) == (128, 4096)]


def one_head(head_dim: int, seq: int) -> Shape:
    """A single head, which the first rungs take."""
    facts = {"dtype": "bfloat16", "head_dim": head_dim, "seq": seq, "causal": False}
    return Shape(**facts, batch=1, heads=1)


def compare(
    shape: Shape,
    own: Iterable[str],
    others: Iterable[str] = (),
    *,
    variants: Mapping[str, Variant] | None = None,
    window: int | None = None,
    **options: Any,
) -> Trial:
    """Snippets, variants of snippets, and peers on the same q, k and v.

    Snippets get the options, which are their own; all get the mask.
    """
    qkv, changed = normal(shape), variants or {}
    mask = {"causal": True} if shape.causal else {}
    if window:
        mask["window"] = window
    return Trial(
        own=published(own, *qkv, **mask, **options)
        | {name: partial(each.call, *qkv, **mask) for name, each in changed.items()},
        peers={name: partial(peers.ATTENTION[name], *qkv, **mask) for name in others},
        check=lambda name, result: check(*qkv, result, name, **mask),
        work=flops(shape),
        facts={name: {"of": each.of} for name, each in changed.items()},
    )


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
    name: str = "",
    *,
    causal: bool = False,
    window: int | None = None,
) -> None:
    """Compare some rows of the last head with float64, fp8 less strictly.

    Raises:
        Wrong: they differ.
    """
    seq_q, head_dim = q.shape[-2:]
    rows = torch.arange(0, seq_q, max(1, seq_q // 16), device=q.device) + seq_q - 1
    rows %= seq_q
    last_k, last_v = (x[-1, -1].double() for x in (k, v))
    s = q[-1, -1][rows].double() @ last_k.T * head_dim**-0.5
    if causal:
        back = rows[:, None] - torch.arange(k.shape[-2], device=q.device)
        s = s.where((back >= 0) & (back < (window or seq_q)), float("-inf"))
    expected = torch.softmax(s, dim=-1) @ last_v
    found = first(result).reshape(-1, seq_q, head_dim)[-1][rows].double()
    near(found, expected, 0.2 if "fp8" in name else 0.02)
