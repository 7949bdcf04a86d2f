"""Philox and the masks made of it, in NumPy: nothing of Triton's is used."""

from collections.abc import Sequence

import numpy as np
import torch

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEYS = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)


def philox(key: int, counter: Sequence[np.ndarray | int]) -> list[np.ndarray]:
    """Philox4x32 with ten rounds: four words of 32 bits for four words of a counter."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(c, np.uint64) for c in counter))
    low, high = np.uint64(2**32 - 1), np.uint64(32)
    k0, k1 = np.uint64(key % 2**32), np.uint64(key >> 32)
    for _ in range(10):
        a, b = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (b >> high) ^ c1 ^ k0, b & low, (a >> high) ^ c3 ^ k1, a & low
        k0, k1 = (k0 + KEYS[0]) & low, (k1 + KEYS[1]) & low
    return [c.astype(np.uint32) for c in (c0, c1, c2, c3)]


def halves(key: int, counter: Sequence[np.ndarray | int]) -> np.ndarray:
    """The low and the high 16 bits of each of the four words: [..., 8]."""
    words = philox(key, counter)
    return np.stack([x for w in words for x in (w & 0xFFFF, w >> 16)], axis=-1)


def kept_elements(
    size: int, *, p: float, seed: int, device: str, first: int = 0
) -> torch.Tensor:
    """[size], bool: which elements stay, from index `first` on."""
    index = np.arange(first, first + size, dtype=np.uint64)
    counter = index // np.uint64(8)
    numbers = halves(seed, (counter % np.uint64(2**32), counter >> np.uint64(32), 0, 0))
    number = np.take_along_axis(numbers, (index % np.uint64(8))[:, None].astype(int), 1)
    return torch.from_numpy(number[:, 0] >= round(p * 65536)).to(device)


def kept_weights(
    shape: Sequence[int], *, p: float, seed: int, device: str
) -> torch.Tensor:
    """[batch, heads, seq_q, seq_k], bool: which weights of attention stay."""
    batch, heads, seq_q, seq_k = shape
    head = np.arange(batch * heads)[:, None, None]
    row, eight = np.arange(seq_q)[:, None], np.arange(-(-seq_k // 8))
    numbers = halves(seed, (eight, row, head, 0))
    numbers = numbers.reshape(batch, heads, seq_q, 8 * len(eight))[..., :seq_k]
    return torch.from_numpy(numbers >= round(p * 65536)).to(device)


def kept_share(p: float) -> float:
    """1 - p with p rounded as the kernels round it."""
    return 1 - round(p * 65536) / 65536


# Key, counter, result: of the tests in the library of those who invented Philox.
KNOWN = (
    (0, (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        2**64 - 1,
        (2**32 - 1,) * 4,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        0x299F31D0_A4093822,
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
