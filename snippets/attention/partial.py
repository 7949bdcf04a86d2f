"""Partial attention as a monoid (m, l, o): keys in any parts, merged in any order."""

import torch

# --8<-- [start:monoid]
# Maximum, denominator and unnormalised output of one part of the keys.
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def partial(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> Triple:
    """Attention to one part of the keys, before the division.

    Args:
        q: [..., seq_q, head_dim], float32 or float64.
        k: [..., seq_k, head_dim], dtype and leading dimensions of q: some of the
            keys, or none.
        v: shape and dtype of k: their values.
        scale: what q k^T is multiplied by; head_dim ** -0.5 if None.

    Returns:
        m_i and l_i, [..., seq_q, 1], and acc, [..., seq_q, head_dim]: the largest
        score, the sum of p = exp(s - m_i), and p v.

    Raises:
        ValueError: q is not one of the above, or k or v not as q.

    Source: Dao et al., "FlashAttention", 2022, section 3.1.
    """
    # acc is not divided yet: float16 would overflow, bfloat16 stop growing.
    if q.ndim < 2 or q.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"q is {q.dtype} with {q.ndim} dimensions; "
            "it must be [..., seq_q, head_dim], float32 or float64"
        )
    if q.shape[-1] == 0:
        raise ValueError("q has head_dim 0; it must be at least 1")
    same = k.ndim == q.ndim and k.shape[:-2] == q.shape[:-2]
    if not same or (k.shape[-1], k.dtype) != (q.shape[-1], q.dtype):
        raise ValueError(
            f"k is {k.dtype} of shape {list(k.shape)}; it must be as q, "
            f"{q.dtype} of shape {list(q.shape)}, but for seq_k"
        )
    if (v.shape, v.dtype) != (k.shape, k.dtype):
        raise ValueError(
            f"v is {v.dtype} of shape {list(v.shape)}; "
            f"it must be {k.dtype} of shape {list(k.shape)}, as k"
        )
    if k.shape[-2] == 0:
        return identity(q)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = q @ k.mT * scale
    # --8<-- [line:part_max]
    m_i = s.amax(dim=-1, keepdim=True)
    # Every score is -inf: subtract 0, because (-inf) - (-inf) is NaN.
    shift = torch.where(m_i == float("-inf"), 0.0, m_i)
    p = torch.exp(s - shift)
    # --8<-- [line:part_sum]
    l_i = p.sum(dim=-1, keepdim=True)
    # --8<-- [line:part_output]
    acc = p @ v
    return m_i, l_i, acc


def identity(q: torch.Tensor) -> Triple:
    """Attention to no keys: merging with it changes nothing.

    Args:
        q: [..., seq_q, head_dim], a floating dtype.
    """
    l_i = torch.zeros_like(q[..., :1])
    return torch.full_like(l_i, float("-inf")), l_i, torch.zeros_like(q)


def merge(a: Triple, b: Triple) -> Triple:
    """Attention to the keys of two parts together.

    Args:
        a: m_i, l_i and acc of one part.
        b: the same of another, of the same shapes.

    Returns:
        m_i, l_i and acc of both parts.
    """
    (m_a, l_a, acc_a), (m_b, l_b, acc_b) = a, b
    # --8<-- [line:max]
    m_i = torch.maximum(m_a, m_b)
    # Both parts all -inf: subtract 0, because (-inf) - (-inf) is NaN.
    shift = torch.where(m_i == float("-inf"), 0.0, m_i)
    # --8<-- [line:factors]
    alpha, beta = torch.exp(m_a - shift), torch.exp(m_b - shift)
    # --8<-- [line:sum]
    l_i = l_a * alpha + l_b * beta
    # --8<-- [line:output]
    acc = acc_a * alpha + acc_b * beta
    return m_i, l_i, acc


def finish(a: Triple) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and logsumexp, once all keys are in.

    Args:
        a: m_i, l_i and acc.

    Returns:
        o: [..., seq_q, head_dim]. A row without keys, or whose scores are all -inf,
            is 0.
        lse: [..., seq_q], natural logarithm; -inf for such a row.
    """
    m_i, l_i, acc = a
    # --8<-- [line:divide]
    o = acc / torch.where(l_i == 0, 1.0, l_i)
    # --8<-- [line:lse]
    lse = m_i + torch.log(l_i)
    return o, lse.squeeze(-1)


# --8<-- [end:monoid]


# --8<-- [start:normalised]
Pair = tuple[torch.Tensor, torch.Tensor]


def merge_normalised(a: Pair, b: Pair) -> Pair:
    """The same merge of parts that are already divided, as kernels return them.

    Args:
        a: o, [..., seq_q, head_dim], and lse, [..., seq_q], of one part.
        b: the same of another part.

    Returns:
        o and lse of both parts.

    Source: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference",
    2023, step 3.
    """
    (o_a, lse_a), (o_b, lse_b) = a, b
    m_i = torch.maximum(lse_a, lse_b)
    shift = torch.where(m_i == float("-inf"), 0.0, m_i)
    # --8<-- [line:weights]
    w_a, w_b = torch.exp(lse_a - shift), torch.exp(lse_b - shift)
    l_i = w_a + w_b
    # --8<-- [line:average]
    o = o_a * w_a[..., None] + o_b * w_b[..., None]
    o = o / torch.where(l_i == 0, 1.0, l_i)[..., None]
    # --8<-- [line:both]
    return o, m_i + torch.log(l_i)


# --8<-- [end:normalised]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = torch.randn(3, 4, 500, 64, device=device)
    expected = torch.softmax(q.double() @ k.mT.double() / 8, dim=-1) @ v.double()
    cuts = range(0, 500, 70)
    parts = [partial(q, k[:, i : i + 70], v[:, i : i + 70]) for i in cuts]
    merged, averaged = identity(q), finish(identity(q))
    for part in reversed(parts):
        merged = merge(merged, part)
        averaged = merge_normalised(averaged, finish(part))
    for name, (o, _) in (("merged", finish(merged)), ("averaged", averaged)):
        error = (o - expected).abs().max().item()
        print(f"{device}: {len(parts)} parts {name}, largest error {error:.1e}")
# --8<-- [end:demo]
