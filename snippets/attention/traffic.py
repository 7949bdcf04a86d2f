"""What attention moves and calculates: three kernels, FlashAttention-1 and -2."""

from math import ceil

import torch

STATE = 4  # bytes of a float32: the running output, maximum and sum, and lse


# --8<-- [start:reference]
def three_kernels(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T) v: a kernel for each operation, and a matrix between two of them.

    Args:
        q: [seq_q, head_dim], scaled already.
        k: [seq_k, head_dim].
        v: [seq_k, head_dim].

    Source: Dao et al., "FlashAttention", 2022, algorithm 0.
    """
    s = q @ k.T
    p = torch.softmax(s, dim=-1)
    return p @ v


# --8<-- [end:reference]


# --8<-- [start:naive]
def naive_bytes(seq_q: int, seq_k: int, head_dim: int, itemsize: int) -> dict[str, int]:
    """Bytes that three_kernels moves, for each tensor."""
    queries, keys = seq_q * head_dim * itemsize, seq_k * head_dim * itemsize
    scores = seq_q * seq_k * itemsize
    return {
        "load q": queries,
        "load k": keys,
        "store s": scores,
        "load s": scores,
        "store p": scores,
        "load p": scores,
        "load v": keys,
        "store o": queries,
    }


# --8<-- [end:naive]


# --8<-- [start:flash1]
def flash1_bytes(
    seq_q: int, seq_k: int, head_dim: int, itemsize: int, block_m: int, block_n: int
) -> dict[str, int]:
    """Bytes that flash1.py moves, for each tensor."""
    programs, launches = ceil(seq_q / block_m), ceil(seq_k / block_n)
    queries, keys = seq_q * head_dim * itemsize, seq_k * head_dim * itemsize
    o, row = seq_q * head_dim * STATE, seq_q * STATE
    cast = itemsize != STATE  # at the end o is read, and written in the dtype of q
    return {
        "load q": launches * queries,
        "load k": programs * keys,
        "load v": programs * keys,
        "load o": (launches + cast) * o,
        "load m": launches * row,
        "load l": launches * row,
        "store o": (1 + launches) * o + cast * queries,
        "store m": (1 + launches) * row,
        "store l": (1 + launches) * row,
    }


# --8<-- [end:flash1]


# --8<-- [start:flash2]
def flash2_bytes(
    seq_q: int, seq_k: int, head_dim: int, itemsize: int, block_m: int
) -> dict[str, int]:
    """Bytes that flash2_single_head.py moves, for each tensor."""
    programs = ceil(seq_q / block_m)
    queries, keys = seq_q * head_dim * itemsize, seq_k * head_dim * itemsize
    return {
        "load q": queries,
        "load k": programs * keys,
        "load v": programs * keys,
        "store o": queries,
        "store lse": seq_q * STATE,
    }


# --8<-- [end:flash2]


# --8<-- [start:operations]
def matmul_operations(seq_q: int, seq_k: int, head_dim: int) -> int:
    """Multiplications and additions of q k^T and of p v."""
    return 4 * seq_q * seq_k * head_dim


def flash1_operations(
    seq_q: int, seq_k: int, head_dim: int, block_m: int, block_n: int
) -> int:
    """All others of flash1.py, where the blocks divide seq and head_dim is whole."""
    tile = 5 * block_m * block_n + 8 * block_m + 4 * block_m * head_dim
    return ceil(seq_q / block_m) * ceil(seq_k / block_n) * tile


def flash2_operations(
    seq_q: int, seq_k: int, head_dim: int, block_m: int, block_n: int
) -> int:
    """All others of flash2_single_head.py, in the same case."""
    tile = 5 * block_m * block_n + 5 * block_m + 2 * block_m * head_dim
    finish = block_m * head_dim + 2 * block_m
    return ceil(seq_q / block_m) * (ceil(seq_k / block_n) * tile + finish)


# --8<-- [end:operations]

# --8<-- [start:demo]
SEQ, HEAD_DIM, ITEMSIZE = 512, 64, 2
TILES = ((64, 32), (128, 128))

if __name__ == "__main__":
    sizes = SEQ, SEQ, HEAD_DIM
    for tile in TILES:
        columns = [
            naive_bytes(*sizes, ITEMSIZE),
            flash1_bytes(*sizes, ITEMSIZE, *tile),
            flash2_bytes(*sizes, ITEMSIZE, tile[0]),
        ]
        print(f"seq {SEQ}, head_dim {HEAD_DIM}, float16, tiles of {tile}")
        print(f"{'':10}{'three':>10}{'flash1':>10}{'flash2':>10}")
        for name in sorted({name for column in columns for name in column}):
            cells = (f"{column.get(name, '-'):>10}" for column in columns)
            print(f"{name:10}", *cells, sep="")
        cells = (f"{sum(column.values()):10}" for column in columns)
        print(f"{'all':10}", *cells, sep="")
        others = flash1_operations(*sizes, *tile), flash2_operations(*sizes, *tile)
        cells = (f"{n / matmul_operations(*sizes):10.1%}" for n in others)
        print(f"{'other operations':20}", *cells, sep="")
        print()
# --8<-- [end:demo]
