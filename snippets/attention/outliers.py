"""Queries and keys before they are float8: rotated, or without the keys' mean."""

import torch


# --8<-- [start:rotate]
def rotation(head_dim: int, *, seed: int = 0) -> torch.Tensor:
    """An orthogonal matrix [head_dim, head_dim], float32: random signs, then Hadamard.

    Each column of x @ rotation mixes `size` columns of x alike, where `size` is the
    largest power of two that divides head_dim.
    """
    size = head_dim & -head_dim
    hadamard = torch.ones(1, 1)
    while len(hadamard) < size:
        # --8<-- [line:kron]
        hadamard = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), hadamard)
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(2, (head_dim, 1), generator=generator) * 2 - 1
    # --8<-- [line:blocks]
    return signs * torch.kron(torch.eye(head_dim // size), hadamard) / size**0.5


def rotate(
    q: torch.Tensor, k: torch.Tensor, *, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """q and k times one orthogonal matrix: q k^T stays, and outliers are spread.

    Args:
        q: [..., seq_q, head_dim], of any floating dtype.
        k: [..., seq_k, head_dim], on the device of q.
        seed: of the signs. All keys of a cache need the same.

    Returns both in float32, to be quantised next.
    Raises ValueError: q and k differ in head_dim.
    Source: Shah et al., "FlashAttention-3", 2024, section 3.3: incoherent processing.
    """
    head_dim = q.shape[-1]
    if k.shape[-1] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[-1]}; it must have q's, {head_dim}")
    matrix = rotation(head_dim, seed=seed).to(q.device)
    return q.float() @ matrix, k.float() @ matrix


# --8<-- [end:rotate]
# --8<-- [start:centre]
def centre(k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """k without the mean of its keys, and that mean: the same weights, and no offset.

    Args:
        k: [..., seq_k, head_dim], of any floating dtype, with a key at least.

    Returns k - mean and mean [..., 1, head_dim], in float32. The output of attention
    stays, and lse is scale * (q * mean).sum(-1) less than with k itself.
    Raises ValueError: k has no key.
    Source: Zhang et al., "SageAttention", 2024: smoothing of K.
    """
    if k.shape[-2] == 0:
        raise ValueError("k has 0 keys; their mean needs 1 at least")
    mean = k.float().mean(dim=-2, keepdim=True)
    return k.float() - mean, mean


# --8<-- [end:centre]
# --8<-- [start:rounded]
def rounded(x: torch.Tensor, rows: int) -> torch.Tensor:
    """x [..., seq, head_dim], float32, as float8_e4m3fn keeps it.

    Every `rows` rows, and what is left of them at the end, have a scale of their own.
    """
    blocks = []
    for block in x.split(rows, dim=-2):
        # Not 0, because 0 / 0 is NaN.
        scale = (block.abs().amax(dim=(-2, -1), keepdim=True) / 448).clamp(min=2**-126)
        blocks.append((block / scale).to(torch.float8_e4m3fn).float() * scale)
    return torch.cat(blocks, dim=-2)


# --8<-- [end:rounded]
# --8<-- [start:errors]
def errors(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, float]:
    """How far rounded queries and keys move softmax(q k^T / sqrt(head_dim)) v.

    Args:
        q, k, v: [..., seq, head_dim], float32. v is not rounded.

    Returns the root mean square of the difference, divided by that of the output.
    """
    sdpa = torch.nn.functional.scaled_dot_product_attention
    exact = sdpa(q.double(), k.double(), v.double())

    def error(q: torch.Tensor, k: torch.Tensor, rows: int | None = None) -> float:
        q8, k8 = (rounded(x, rows or x.shape[-2]) for x in (q, k))
        return ((sdpa(q8, k8, v) - exact).norm() / exact.norm()).item()

    centred, _ = centre(k)
    return {
        "as they are": error(q, k),
        "128 rows": error(q, k, rows=128),
        "no mean": error(q, centred),
        "rotated": error(*rotate(q, k)),
        "both": error(*rotate(q, centred)),
    }


# --8<-- [end:errors]
# --8<-- [start:inputs]
def inputs(kind: str, seq: int, heads: int = 8) -> list[torch.Tensor]:
    """q of 64 rows, k and v of `seq` rows, [heads, rows, 128], float32, random.

    kind: "none"; "scattered", where one number in 1000 has another one added that is 10
    times as large; "columns", where 30 is added to two columns of k.
    """
    q, k, v = (torch.randn(heads, rows, 128) for rows in (64, seq, seq))
    if kind == "scattered":
        for x in (q, k, v):
            x += torch.randn_like(x) * 10 * (torch.rand_like(x) < 0.001)
    if kind == "columns":
        k[..., [3, 77]] += 30
    return [q, k, v]


# --8<-- [end:inputs]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    print(f"{device}: relative error of the output, queries and keys in float8")
    for kind in ("none", "scattered", "columns"):
        for seq in (512, 2048, 8192):
            found = errors(*(x.to(device) for x in inputs(kind, seq)))
            if (kind, seq) == ("none", 512):
                print(f"{'outliers':9} {'keys':>5}  {'  '.join(found)}")
            cells = (f"{x:{len(name)}.3f}" for name, x in found.items())
            print(f"{kind:9} {seq:5}  {'  '.join(cells)}")
# --8<-- [end:demo]
