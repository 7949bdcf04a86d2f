"""The pair (maximum, sum) as a monoid: merge the parts of a row in any order."""

import torch

# --8<-- [start:monoid]
Pair = tuple[torch.Tensor, torch.Tensor]

# Merging with the identity changes nothing: exp(-inf) adds 0 to every sum.
IDENTITY: Pair = (torch.tensor(float("-inf")), torch.tensor(0.0))


def from_value(x: torch.Tensor) -> Pair:
    """The pair of each value on its own.

    Args:
        x: any shape, a floating dtype.

    Returns:
        m_i and l_i, shape and dtype of x: (x, 1), or the identity where x is -inf.
    """
    return x, torch.where(x == float("-inf"), 0.0, torch.ones_like(x))


def merge(a: Pair, b: Pair) -> Pair:
    """The pairs of two parts together, element by element.

    Args:
        a: maximum and sum of exp(x - maximum) of one part, shapes that broadcast.
        b: the same of another part.

    Returns:
        m_i and l_i of both parts, broadcast shape.
    """
    (m_a, l_a), (m_b, l_b) = a, b
    # --8<-- [line:max]
    m_i = torch.maximum(m_a, m_b)
    # Both parts all -inf: subtract 0, because (-inf) - (-inf) is NaN.
    shift = torch.where(m_i == float("-inf"), 0.0, m_i)
    # --8<-- [line:rescale]
    l_i = l_a * torch.exp(m_a - shift) + l_b * torch.exp(m_b - shift)
    return m_i, l_i


# --8<-- [end:monoid]


# --8<-- [start:orders]
def left_to_right(x: torch.Tensor) -> Pair:
    """The pair of each row, one value after the other: online softmax.

    Args:
        x: [..., cols], a floating dtype; cols may be 0.

    Returns:
        m_i and l_i, each [...], dtype of x.
    """
    pair = tuple(part.to(x).expand(x.shape[:-1]) for part in IDENTITY)
    for value in x.unbind(dim=-1):
        pair = merge(pair, from_value(value))
    return pair


def tree(x: torch.Tensor) -> Pair:
    """The pair of each row, by halves: log2(cols) steps, each of them parallel.

    Args:
        x: [..., cols], a floating dtype; cols may be 0.

    Returns:
        m_i and l_i, each [...], dtype of x.
    """
    # Fill up to a power of two with -inf, whose pair is the identity.
    width = 1
    while width < x.shape[-1]:
        width *= 2
    padding = (0, width - x.shape[-1])
    m_i, l_i = from_value(torch.nn.functional.pad(x, padding, value=float("-inf")))
    while width > 1:
        width //= 2
        left, right = (
            (m_i[..., :width], l_i[..., :width]),
            (m_i[..., width:], l_i[..., width:]),
        )
        m_i, l_i = merge(left, right)
    return m_i[..., 0], l_i[..., 0]


# --8<-- [end:orders]


# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 1000, device=device)
    expected = torch.softmax(x.double(), dim=-1)
    for order in (left_to_right, tree):
        m_i, l_i = (part[:, None] for part in order(x))
        error = (torch.exp(x - m_i) / l_i - expected).abs().max().item()
        print(f"{device}: {order.__name__}, largest error {error:.1e}")
# --8<-- [end:demo]
