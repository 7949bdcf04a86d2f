"""Attention as its formula says it: in float64, and as PyTorch computes it unfused."""

import torch

from tests.harness.inputs import INF


def visible(
    seq_q: int,
    seq_k: int,
    device: torch.device | str,
    *,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """[seq_q, seq_k], bool: which keys each query sees; aligned bottom right.

    With a window, a query sees the last `window` keys of those that causal leaves.
    """
    rows = torch.arange(seq_q, device=device)[:, None] + seq_k - seq_q
    cols = torch.arange(seq_k, device=device)[None, :]
    seen = torch.ones((seq_q, seq_k), dtype=torch.bool, device=device)
    if causal:
        seen &= cols <= rows
    if window is not None:
        seen &= cols > rows - window
    return seen


def scores(
    q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float, window: int | None
) -> torch.Tensor:
    """[..., seq_q, seq_k] in the dtype of q and k; -inf where a query does not see."""
    s = (q @ k.mT).mul_(scale)
    seen = visible(*s.shape[-2:], s.device, causal=causal, window=window)
    return s.masked_fill_(~seen, -INF)


def for_heads_of(q: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """k or v, repeated for the query heads that share a head of it."""
    if q.ndim < 4 or x.shape[1] in (0, q.shape[1]):
        return x
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in float64. A row with no score but -inf: o = 0, lse = -inf."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (for_heads_of(q, x).double() for x in (k, v))
    s = scores(q.double(), k, causal, scale, window)
    if s.shape[-1]:
        m_i = s.amax(dim=-1, keepdim=True)
    else:
        m_i = s.new_full((*s.shape[:-1], 1), -INF)
    m_i = torch.where(m_i == -INF, 0.0, m_i)
    p = s.sub_(m_i).exp_()  # in place: the scores of the largest case fill 17 GB
    l_i = p.sum(dim=-1, keepdim=True)
    o = (p @ v) / torch.where(l_i == 0, 1.0, l_i)
    return o, (m_i + l_i.log()).squeeze(-1)


def baseline(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) as PyTorch computes them unfused.

    o is matmul, softmax, matmul in the dtype of q; lse comes from float32 scores.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = scores(q, k, causal, scale, window)
    p = torch.softmax(s, dim=-1)
    p = torch.where((s == -INF).all(dim=-1, keepdim=True), 0.0, p)
    s = scores(q.float(), k.float(), causal, scale, window)
    return p @ v, torch.logsumexp(s, dim=-1)
