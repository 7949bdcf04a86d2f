"""Wrong on purpose: causal gradients, but dk and dv forget the mask."""

import torch


# --8<-- [start:forward]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """o and lse of causal attention, as many keys as queries."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v, torch.logsumexp(scores, dim=-1)


# --8<-- [end:forward]
# --8<-- [start:backward]
def gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
    lse: torch.Tensor, do: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """A dq that is right, and a wrong dk and dv."""
    scale = q.shape[-1] ** -0.5
    p = torch.exp(q @ k.mT * scale - lse[..., None])
    ds = p * (do @ v.mT - (do * o).sum(dim=-1, keepdim=True))
    # The first kernel skips and masks what lies above the diagonal.
    # --8<-- [line:masked]
    dq = ds.tril() @ k * scale
    # Wrong: the second one does not, so queries add to keys that they never saw.
    # --8<-- [line:unmasked]
    return dq, ds.mT @ q * scale, p.mT @ do


# --8<-- [end:backward]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    q, k, v, do = torch.randn(4, 256, 64, generator=generator).double().to(device)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o, lse = attention(*leaves)
    exact = torch.autograd.grad(o, leaves, do)
    with torch.no_grad():
        found = gradients(q, k, v, o, lse, do)
        p = torch.exp(q @ k.mT / 8 - lse[:, None])
    for name, dx, right in zip(("dQ", "dK", "dV"), found, exact, strict=True):
        rows = (dx - right).abs().amax(dim=-1)
        errors = ", ".join(f"{rows[i]:.1e} in row {i}" for i in (0, 1, 128))
        print(f"{name}: largest error {errors}")
    print(f"largest weight of a key that is not seen: {p.triu(1).max():.0f}")
# --8<-- [end:demo]
