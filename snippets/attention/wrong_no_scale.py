"""Wrong on purpose: scores without 1 / sqrt(head_dim). Softmax picks one key."""

import torch


# --8<-- [start:reference]
def weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T): the scale is missing."""
    return torch.softmax(q @ k.mT, dim=-1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T) v: finite, plausible, and not attention."""
    return weights(q, k) @ v


# --8<-- [end:reference]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for head_dim in (16, 64, 256):
        generator = torch.Generator().manual_seed(0)
        q, k, v = torch.randn(3, 512, head_dim, generator=generator).to(device)
        scaled = torch.softmax(q @ k.mT * head_dim**-0.5, dim=-1)
        wrong, right = (p.amax(dim=-1).mean() for p in (weights(q, k), scaled))
        error = (attention(q, k, v) - scaled @ v).abs().max()
        print(
            f"head_dim {head_dim}: mean of the largest weight {wrong:.2f}, "
            f"with the scale {right:.2f}; largest error {error:.1f}"
        )
# --8<-- [end:demo]
