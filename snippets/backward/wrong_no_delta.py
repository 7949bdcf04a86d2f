"""Wrong on purpose: gradients of attention without delta. On noise they look right."""

import torch


# --8<-- [start:backward]
def gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lse: torch.Tensor,
    do: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Wrong dq and dk of softmax(q k^T / sqrt(head_dim)) v, and a dv that is right."""
    scale = q.shape[-1] ** -0.5
    p = torch.exp(q @ k.mT * scale - lse[..., None])
    dp = do @ v.mT
    # Wrong: no delta is subtracted from dp, so no row of ds adds up to 0.
    # --8<-- [line:wrong_ds]
    ds = p * dp
    return ds @ k * scale, ds.mT @ q * scale, p.mT @ do


# --8<-- [end:backward]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    q, k, v, do = torch.randn(4, 1024, 64, generator=generator).to(device)
    for what, moved in (("normal noise", 0.0), ("5 added to every key", 5.0)):
        exact = [x.double().requires_grad_() for x in (q, k + moved, v)]
        scores = exact[0] @ exact[1].mT / 8
        (torch.softmax(scores, dim=-1) @ exact[2]).backward(do.double())
        lse = torch.logsumexp(scores.detach(), dim=-1).float()
        dq, *_ = gradients(q, k + moved, v, lse, do)
        wrong, right = dq.double().flatten(), exact[0].grad.flatten()
        cosine = torch.cosine_similarity(wrong, right, dim=0).item()
        print(f"{what}: wrong and right dQ have a cosine of {cosine:.2f}")
# --8<-- [end:demo]
