"""The gradients of attention as its formula says them: by PyTorch's own autograd."""

from collections.abc import Callable

import torch

from tests.harness.inputs import INF
from tests.snippets.attention.reference import for_heads_of, visible

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in the dtype of q, differentiable; a row that sees nothing has o = 0."""
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    seen = visible(*s.shape[-2:], s.device, causal=causal, window=window)
    some = seen.any(dim=-1, keepdim=True)
    # Where a row sees nothing, its scores are 0: -inf alone would give NaN.
    s = s.where(seen, s.new_tensor(-INF).where(some, 0.0))
    p = torch.softmax(s, dim=-1) * some if s.shape[-1] else s
    lse = torch.logsumexp(s, dim=-1).where(some[..., 0], -INF)
    return p @ v, lse


def gradients(
    forward: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    dlse: torch.Tensor | None,
) -> Gradients:
    """(dq, dk, dv) of a forward pass, in the dtype of q."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        o, lse = forward(*leaves)
        outputs, given = [o], [do.to(o)]
        if dlse is not None:
            outputs, given = [o, lse], [do.to(o), dlse.to(lse)]
        return torch.autograd.grad(outputs, leaves, given, materialize_grads=True)
