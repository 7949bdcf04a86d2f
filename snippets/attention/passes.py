"""Attention of one query in three passes over the keys, in two, and in one."""

import torch


# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the argument that is not as it must be."""
    # In fewer bits a sum of ones stops growing: bfloat16 at 256, float16 at 2048.
    if q.ndim != 1 or len(q) == 0 or q.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"q is {q.dtype} of shape {list(q.shape)}; "
            "it must be [head_dim], float32 or float64, with head_dim at least 1"
        )
    if k.ndim != 2 or k.shape[1] != len(q) or k.dtype != q.dtype:
        raise ValueError(
            f"k is {k.dtype} of shape {list(k.shape)}; "
            f"it must be {q.dtype} of shape [seq, {len(q)}], as q"
        )
    if v.shape != k.shape or v.dtype != q.dtype:
        raise ValueError(
            f"v is {v.dtype} of shape {list(v.shape)}; "
            f"it must be {q.dtype} of shape {list(k.shape)}, as k"
        )


# --8<-- [end:checks]


# --8<-- [start:three_pass]
def three_pass(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of one query: the maximum, the denominator, the output.

    Args:
        q: [head_dim], float32 or float64.
        k: [seq, head_dim], dtype of q.
        v: [seq, head_dim], dtype of q.

    Returns:
        [head_dim], dtype of q; 0 if every score is -inf, or seq is 0.

    Raises:
        ValueError: an argument is not one of the above.
    """
    check(q, k, v)
    scale = len(q) ** -0.5

    m_i = q.new_tensor(float("-inf"))
    for k_j in k:
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:three_max]
        m_i = torch.maximum(m_i, s)
    # Every score is -inf: subtract 0, because (-inf) - (-inf) is NaN.
    shift = torch.where(m_i == float("-inf"), 0.0, m_i)

    l_i = q.new_tensor(0.0)
    for k_j in k:
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:three_sum]
        l_i = l_i + torch.exp(s - shift)
    if l_i == 0:
        return torch.zeros_like(q)

    o = torch.zeros_like(q)
    for k_j, v_j in zip(k, v, strict=True):
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:three_output]
        o = o + torch.exp(s - shift) / l_i * v_j
    return o


# --8<-- [end:three_pass]


# --8<-- [start:two_pass]
def two_pass(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """As three_pass; maximum and denominator in one pass: online softmax.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax",
    2018, algorithm 3.
    """
    check(q, k, v)
    scale = len(q) ** -0.5

    m_i, l_i = q.new_tensor(float("-inf")), q.new_tensor(0.0)
    for k_j in k:
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:two_max]
        m_new = torch.maximum(m_i, s)
        # Every score so far is -inf: subtract 0.
        shift = torch.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:two_sum]
        l_i = l_i * torch.exp(m_i - shift) + torch.exp(s - shift)
        m_i = m_new
    if l_i == 0:
        return torch.zeros_like(q)

    o = torch.zeros_like(q)
    for k_j, v_j in zip(k, v, strict=True):
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:two_output]
        o = o + torch.exp(s - m_i) / l_i * v_j
    return o


# --8<-- [end:two_pass]


# --8<-- [start:one_pass]
def one_pass(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """As three_pass, in one pass: the output so far is rescaled like the denominator.

    Source: Dao, "FlashAttention-2", 2023, section 3.1, with blocks of one key.
    """
    check(q, k, v)
    scale = len(q) ** -0.5

    m_i, l_i = q.new_tensor(float("-inf")), q.new_tensor(0.0)
    acc = torch.zeros_like(q)
    for k_j, v_j in zip(k, v, strict=True):
        s = torch.dot(q, k_j) * scale
        # --8<-- [line:one_max]
        m_new = torch.maximum(m_i, s)
        # Every score so far is -inf: subtract 0.
        shift = torch.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:one_weight]
        alpha, p = torch.exp(m_i - shift), torch.exp(s - shift)
        # --8<-- [line:one_sum]
        l_i = l_i * alpha + p
        # --8<-- [line:one_output]
        acc = acc * alpha + p * v_j
        m_i = m_new
    # --8<-- [line:one_divide]
    return torch.where(l_i == 0, 0.0, acc / l_i)


# --8<-- [end:one_pass]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1000, 64, generator=generator).to(device)
    scores = k.double() @ q[0].double() * 64**-0.5
    expected = torch.softmax(scores, dim=0) @ v.double()
    for function in (three_pass, two_pass, one_pass):
        error = (function(q[0], k, v) - expected).abs().max().item()
        print(f"{device}: {function.__name__}, largest error {error:.1e}")
# --8<-- [end:demo]
