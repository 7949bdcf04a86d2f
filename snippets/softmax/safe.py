"""Softmax by its definition, safe softmax, and logsumexp, in PyTorch."""

import torch


# --8<-- [start:naive]
def naive(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension by its definition: NaN where exp(x) overflows.

    Args:
        x: [..., cols], a floating dtype.

    Returns:
        [..., cols], dtype of x.
    """
    numerator = torch.exp(x)
    return numerator / numerator.sum(dim=-1, keepdim=True)


# --8<-- [end:naive]


# --8<-- [start:reference]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension; no exponent is above 0.

    Args:
        x: [..., cols], a floating dtype.

    Returns:
        [..., cols], dtype of x. NaN for a row that is all -inf or holds NaN or +inf.
        The arithmetic is float32, or float64 for float64.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, algorithm 2 (safe softmax).
    """
    if x.numel() == 0:
        return torch.empty_like(x)
    # --8<-- [line:wide]
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    # --8<-- [line:max]
    m_i = wide.amax(dim=-1, keepdim=True)
    # --8<-- [line:numerator]
    numerator = torch.exp(wide - m_i)
    # --8<-- [line:sum]
    l_i = numerator.sum(dim=-1, keepdim=True)
    # --8<-- [line:output]
    return (numerator / l_i).to(x.dtype)


# --8<-- [end:reference]


# --8<-- [start:logsumexp]
def logsumexp(x: torch.Tensor) -> torch.Tensor:
    """log(sum(exp(x))) over the last dimension, where exp(x) may overflow.

    Args:
        x: [..., cols], a floating dtype.

    Returns:
        [...], dtype of x; softmax(x) is exp(x - logsumexp(x)). It is -inf for a row
        that is all -inf or empty, and +inf for a row that holds +inf. The arithmetic
        is float32, or float64 for float64.
    """
    if x.shape[-1] == 0:
        return torch.full(x.shape[:-1], float("-inf"), dtype=x.dtype, device=x.device)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    m_i = wide.amax(dim=-1, keepdim=True)
    # A maximum of -inf or +inf is not subtracted: inf - inf is NaN.
    m_i = torch.where(m_i.isinf(), 0.0, m_i)
    l_i = torch.exp(wide - m_i).sum(dim=-1)
    return (m_i.squeeze(-1) + torch.log(l_i)).to(x.dtype)


# --8<-- [end:logsumexp]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    for shift in (0, 100):
        expected = torch.softmax((x + shift).double(), dim=-1)
        for function in (naive, softmax):
            error = (function(x + shift) - expected).abs().max().item()
            name = function.__name__
            print(f"{device}: {name}(x + {shift}), largest error {error:.1e}")
    error = logsumexp(x + 100) - torch.logsumexp((x + 100).double(), dim=-1)
    print(f"{device}: logsumexp(x + 100), largest error {error.abs().max().item():.1e}")
# --8<-- [end:demo]
