"""Tests of snippets/hopper/fp8_tile.py."""

from snippets.hopper import fp8_tile
from tests.harness.suite import Refusal
from tests.snippets.hopper.fp8 import Fp8Tests
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401

QUERIES = (1, 63, 64, 65, 200)


class TestFp8Tile(Fp8Tests):
    function = staticmethod(fp8_tile.attention)
    longest = 128
    keys = tuple(range(1, 129, 3))
    lengths = tuple((seq_q, seq_k) for seq_q in QUERIES for seq_k in (1, 64, 127, 128))

    def refusals(self) -> dict[str, Refusal]:
        """Also of more than a tile."""
        longer = {
            "k": lambda x: x.new_zeros(2, 2, 144, 16),
            "v": lambda x: x.new_zeros(2, 2, 16, 144),
        }
        return super().refusals() | {"144 keys": Refusal("k has 144 keys; it", longer)}
