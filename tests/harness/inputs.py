"""What the snippets are tried on: values, layouts, lengths and dtypes, once for all.

All tensors are [..., rows, columns]; those of attention are [..., seq, head_dim].
"""

import mmap
from collections.abc import Callable, Sequence

import torch
import triton

INF = float("inf")
NAN = float("nan")
# The interpreter multiplies the bit patterns of bfloat16: no suite tries products of
# it there.
INTERPRETED = triton.knobs.runtime.interpret

HALVES = (torch.float16, torch.bfloat16)
DTYPES = (*HALVES, torch.float32, torch.float64)
QKV = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
View = Callable[[torch.Tensor], torch.Tensor]


def name(dtype: torch.dtype) -> str:
    """The dtype's name without "torch."."""
    return str(dtype).removeprefix("torch.")


# Values.


def normal(
    shape: Sequence[int], dtype: torch.dtype, device: str, *, seed: int = 0
) -> torch.Tensor:
    """Normal values, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    return x.to(dtype=dtype, device=device)


def qkv(
    lead: Sequence[int],
    kv_lead: Sequence[int],
    seq_q: int,
    seq_k: int,
    head_dim: int,
    dtype: torch.dtype,
    device: str,
    *,
    seed: int = 0,
) -> QKV:
    """q, k and v of normal values.

    Args:
        lead: batch and heads of q; () for [seq, head_dim].
        kv_lead: batch and heads of k and v.
        seq_q: rows of q.
        seq_k: rows of k and v.
        head_dim: columns of all three.
        dtype: of all three.
        device: of all three.
        seed: other values for another seed.
    """
    q = normal((*lead, seq_q, head_dim), dtype, device, seed=3 * seed)
    k = normal((*kv_lead, seq_k, head_dim), dtype, device, seed=3 * seed + 1)
    v = normal((*kv_lead, seq_k, head_dim), dtype, device, seed=3 * seed + 2)
    return q, k, v


def far_apart(
    shape: Sequence[int], axis: int, dtype: torch.dtype, device: str, *, seed: int = 0
) -> torch.Tensor:
    """Normal values, 2^30 elements from one to the next along an axis.

    On the CPU the memory between the elements is never touched, so it costs nothing.
    """
    strides = list(torch.empty(tuple(shape), device="meta").stride())
    strides[axis] = 2**30
    size = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1
    if device == "cpu":
        storage = torch.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype=dtype)
    else:
        storage = torch.empty(size, dtype=dtype, device=device)
    x = storage.as_strided(tuple(shape), strides)
    return x.copy_(normal(shape, dtype, device, seed=seed))


def _one_hot(x: torch.Tensor) -> torch.Tensor:
    """A 4 in each row, three columns to the right of that of the row above."""
    rows, cols = x.shape[-2:]
    place = 3 * torch.arange(rows, device=x.device) % cols
    return 4 * torch.nn.functional.one_hot(place, cols).to(x).expand(x.shape)


def _one_huge_column(x: torch.Tensor) -> torch.Tensor:
    """The same, but for one column of 100."""
    x = x.clone()
    x[..., x.shape[-1] // 3] = 100
    return x


# Noise hides what these show: x stands for its shape and, in part, its values.
STRUCTURED: dict[str, View] = {
    "one-hot rows": _one_hot,
    "one huge column": _one_huge_column,
    "constant rows": lambda x: x[..., :1].repeat_interleave(x.shape[-1], dim=-1),
    "equal rows": lambda x: x[..., :1, :].repeat_interleave(x.shape[-2], dim=-2),
}
# What a row may hold besides ordinary values: it replaces the columns of the slice.
SPECIALS: dict[str, tuple[float, slice]] = {
    "first tiles -inf": (-INF, slice(None, 150)),
    "last tiles -inf": (-INF, slice(50, None)),
    "every other -inf": (-INF, slice(None, None, 2)),
    "all but the last -inf": (-INF, slice(None, -1)),
    "all -inf": (-INF, slice(None)),
    "a NaN first": (NAN, slice(None, 1)),
    "a NaN last": (NAN, slice(-1, None)),
    "all NaN": (NAN, slice(None)),
    "a +inf first": (INF, slice(None, 1)),
    "a +inf last": (INF, slice(-1, None)),
    "all +inf": (INF, slice(None)),
}


# Layouts: views of x, of the same values or of some of them repeated.


def _once(x: torch.Tensor, axis: int) -> torch.Tensor:
    """The first along an axis, as if it were there for every index."""
    return x.narrow(axis, 0, 1).expand(x.shape)


LAYOUTS: dict[str, View] = {
    "contiguous": lambda x: x,
    "sliced columns": lambda x: torch.cat([x, x], dim=-1)[..., : x.shape[-1]],
    "every other row": lambda x: x.repeat_interleave(2, dim=-2)[..., ::2, :],
    "transposed": lambda x: x.mT.contiguous().mT,
    "every third column": lambda x: x.repeat_interleave(3, dim=-1)[..., ::3],
    "offset": lambda x: torch.cat([x.flatten()[:5], x.flatten()])[5:].view(x.shape),
    "expanded rows": lambda x: _once(x, -2),
    "expanded columns": lambda x: _once(x, -1),
}
# Of [batch, heads, seq, head_dim].
HEAD_LAYOUTS: dict[str, View] = {
    **LAYOUTS,
    "seq before heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "expanded batch": lambda x: _once(x, 0),
    "expanded heads": lambda x: _once(x, 1),
    "every other head": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
}
# Those whose columns are not side by side, or do not begin at multiples of 16 bytes.
UNALIGNED = {"transposed", "every third column", "offset", "expanded columns"}


# Lengths.


def lengths_around(block: int) -> tuple[int, ...]:
    """Lengths of a row: a block, its neighbours, one or more blocks, and less."""
    return 1, 3, block - 1, block, block + 1, 200, 1000


def pairs_around(block_m: int, block_n: int) -> tuple[tuple[int, int], ...]:
    """(seq_q, seq_k): a block, its neighbours, more than one, and much less."""
    m, n = block_m, block_n
    return (
        (1, 1),
        (1, 2 * n + 8),
        (2 * m + 8, 1),
        (3, 3),
        (m - 1, n - 1),
        (m, n),
        (m + 1, n + 1),
        (m - 1, n + 1),
        (m + 1, n - 1),
        (m, 2 * n + 8),
        (3 * m + 2, n + 4),
        (9, 200),
        (200, 3),
    )


HEAD_DIMS = (32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256)
# The grid of lengths in FlashAttention's own tests, in groups that compile alike: each
# length is a multiple of 16 or is not.
GRID = (
    ((256, 512), (512, 256), (1024, 1024), (2048, 2048)),
    ((113, 203),),
    ((128, 217), (1024, 1023)),
    ((108, 256), (1023, 1024)),
)
# (batch, heads, seq, head_dim): the table in the tests of the fused-attention tutorial.
TABLE = (
    (1, 1, 128, 128),
    (1, 2, 256, 256),
    (2, 2, 128, 256),
    (4, 32, 64, 64),
    (4, 32, 1024, 64),
    (4, 32, 4096, 64),
)
