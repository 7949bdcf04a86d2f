"""Attention in PyTorch, by its definition: every score is computed, and stored."""

import math

import torch


# --8<-- [start:scores]
def scores(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """The N x N matrix: one score for each query and each key.

    Args:
        q: [..., seq_q, head_dim], a floating dtype.
        k: [..., seq_k, head_dim], dtype and leading dimensions of q.
        causal: query i sees key j only if j <= i + seq_k - seq_q: the last query sees
            every key. The other scores are -inf.
        scale: what q k^T is multiplied by; head_dim ** -0.5 if None.

    Returns:
        [..., seq_q, seq_k], dtype of q.

    Raises:
        ValueError: q or k is not one of the above, or head_dim is 0.
    """
    for name, x in (("q", q), ("k", k)):
        if x.ndim < 2 or not x.is_floating_point():
            raise ValueError(
                f"{name} is {x.dtype} with {x.ndim} dimensions; "
                "it must have a floating dtype and at least 2: [..., seq, head_dim]"
            )
    head_dim = q.shape[-1]
    if head_dim == 0:
        raise ValueError("q has head_dim 0; it must be at least 1")
    same = k.shape[:-2] == q.shape[:-2]
    if not same or (k.shape[-1], k.dtype) != (head_dim, q.dtype):
        raise ValueError(
            f"k is {k.dtype} of shape {list(k.shape)}; it must be as q, "
            f"{q.dtype} of shape {list(q.shape)}, but for seq_k"
        )
    # --8<-- [line:scale]
    scale = head_dim**-0.5 if scale is None else scale
    # --8<-- [line:scores]
    s = q @ k.mT * scale
    if causal:
        seq_q, seq_k = s.shape[-2:]
        seen = torch.ones(seq_q, seq_k, dtype=torch.bool, device=q.device)
        # --8<-- [line:causal]
        s = s.where(seen.tril(seq_k - seq_q), float("-inf"))
    return s


# --8<-- [end:scores]


# --8<-- [start:reference]
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """softmax(q k^T * scale) v.

    Args:
        q: [..., seq_q, head_dim], a floating dtype.
        k: [..., seq_k, head_dim], dtype and leading dimensions of q.
        v: shape and dtype of k.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: what q k^T is multiplied by; head_dim ** -0.5 if None.

    Returns:
        [..., seq_q, head_dim], dtype of q. A row without keys, or whose scores
        are all -inf, is 0.

    Raises:
        ValueError: an argument is not one of the above.

    Source: Vaswani et al., "Attention is all you need", 2017, equation 1.
    """
    s = scores(q, k, causal=causal, scale=scale)
    if v.shape != k.shape or v.dtype != q.dtype:
        raise ValueError(
            f"v is {v.dtype} of shape {list(v.shape)}; "
            f"it must be {q.dtype} of shape {list(k.shape)}, as k"
        )
    # --8<-- [line:softmax]
    p = torch.softmax(s, dim=-1)
    # A row that sees nothing is 0 / 0 = NaN so far; its output is 0.
    blind = (s == float("-inf")).all(dim=-1, keepdim=True)
    p = p.masked_fill(blind, 0.0)
    # --8<-- [line:output]
    return p @ v


# --8<-- [end:reference]


# --8<-- [start:memory]
def score_bytes(batch: int, heads: int, seq: int, itemsize: int) -> int:
    """Bytes of the N x N matrices of all heads, itemsize bytes for each score."""
    return batch * heads * seq * seq * itemsize


def traffic(batch: int, heads: int, seq: int, head_dim: int, itemsize: int) -> int:
    """Bytes read and written in HBM by three kernels: multiply, softmax, multiply.

    They read Q and K and write S; read S and write P; read P and V and write O.
    """
    tensor = batch * heads * seq * head_dim * itemsize
    return 4 * tensor + 4 * score_bytes(batch, heads, seq, itemsize)


def longest(capacity: int, batch: int, heads: int, head_dim: int, itemsize: int) -> int:
    """The largest seq at which Q, K, V, O, S and P fit into `capacity` bytes together.

    With N for seq and D for head_dim, a head has 4 N D + 2 N^2 elements, and that is
    2 ((N + D)^2 - D^2).
    """
    elements = capacity // (batch * heads * itemsize)
    return math.isqrt(elements // 2 + head_dim**2) - head_dim


# --8<-- [end:memory]


# --8<-- [start:demo]
def variance_of_scores(head_dim: int, scale: float, device: str) -> float:
    """Variance of 1024 x 1024 scores of normal queries and keys."""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1024, head_dim, generator=generator).to(device)
    return scores(q, k, scale=scale).var().item()


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for head_dim in (16, 64, 256):
        plain, scaled = (
            variance_of_scores(head_dim, scale, device) for scale in (1, head_dim**-0.5)
        )
        print(
            f"head_dim {head_dim}: variance of q k^T {plain:.1f}, scaled {scaled:.3f}"
        )
    for heads in (1, 32, 128, 512):
        fills = longest(141 * 10**9, 1, heads, 128, 2)
        print(f"{heads} heads of 128 components in bf16 fill 141 GB at seq {fills}")
    q, k, v = torch.randn(3, 2, 4, 200, 64, device=device)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double()
    )
    error = (attention(q, k, v) - expected).abs().max().item()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
