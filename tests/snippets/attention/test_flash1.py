"""Tests of snippets/attention/flash1.py."""

from collections.abc import Callable

import torch

from snippets.attention import flash1
from tests.mutations import Mutation
from tests.snippets.attention.cases import (
    LAUNCH_MUTATIONS,
    POINTER_MUTATIONS,
    SingleHeadTests,
    refusal_mutations,
)


class TestFlash1(SingleHeadTests):
    attention = staticmethod(flash1.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 64, "block_n": 16},
        {},
    )
    # Here these rows of keys would be a million launches; the offsets of their last
    # ones are tried with few rows that lie far apart.
    test_more_than_31_bits_of_elements_in_k_and_v = None

    def test_many_launches(self, device: str, check_accuracy: Callable) -> None:
        # The output stays between 1 and 2: rounded each time to float16, it is wrong.
        q, k, v = self.inputs(16, 1000, device, dtype=torch.float16)
        self.check(q, k, v.abs().clamp(1, 2), check_accuracy)

    def test_scores_far_below_zero(self, device: str, check_accuracy: Callable) -> None:
        q, k, v = self.inputs(3, 20, device)
        q, k = torch.zeros_like(q), torch.zeros_like(k)
        q[:, 0], k[:, 0] = 1, -1e7
        self.check(q, k, v, check_accuracy)


def shared(mutations: list[Mutation]) -> list[Mutation]:
    """Those bugs of the attention kernels whose lines are in this one too."""
    other_lines = (
        "mask=(offs_m[:, None] < seq_q)",
        ", mask=offs_m < seq_q",
        "    o = torch.empty(",
    )
    return [bug for bug in mutations if not bug.old.startswith(other_lines)]


MUTATIONS = [
    *shared(POINTER_MUTATIONS),
    *shared(LAUNCH_MUTATIONS),
    *refusal_mutations(2),
    # Where it reads and writes.
    Mutation(
        "mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)",
        "mask_m = offs_m[:, None] < seq_q",
        "q and o beyond head_dim",
    ),
    Mutation(
        "mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)",
        "mask_m = offs_d[None, :] < HEAD_DIM",
        "q and o beyond their rows",
    ),
    Mutation("m_new, mask=offs_m < seq_q", "m_new", "m written beyond its rows"),
    Mutation("l_new, mask=offs_m < seq_q", "l_new", "l written beyond its rows"),
    Mutation(
        'm_ptr + offs_m, mask=offs_m < seq_q, other=float("-inf")',
        "m_ptr + offs_m",
        "m read beyond its rows",
    ),
    Mutation(
        "offs_n = (start_n + tl.arange",
        "offs_n = (start_m + tl.arange",
        "the keys of the query block",
    ),
    Mutation(
        "start_m = tl.program_id(0) * BLOCK_M",
        "start_m = tl.program_id(0) * BLOCK_N",
        "query blocks as long as key blocks",
    ),
    # The tile.
    Mutation(") * scale\n", ")\n", "no scale"),
    Mutation(") * scale\n", ") / scale\n", "divided by the scale"),
    Mutation(
        's = tl.where(offs_n[None, :] < seq_k, s, float("-inf"))',
        "s = s",
        "keys beyond the last have a weight",
    ),
    Mutation(
        's = tl.where(offs_n[None, :] < seq_k, s, float("-inf"))',
        "s = s + tl.where(offs_n[None, :] < seq_k, 0.0, -1e6)",
        "a mask that is not -inf",
    ),
    Mutation(
        "tl.max(s, axis=1)",
        "tl.max(s / scale, axis=1) * scale",
        "a maximum that needs a positive scale",
    ),
    Mutation(
        'tl.where(m_ij == float("-inf"), 0.0, m_ij)[:, None]',
        "m_ij[:, None]",
        "no guard for a tile of -inf",
    ),
    Mutation(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for a row of -inf",
    ),
    Mutation(
        "m_new = tl.maximum(m_i, m_ij)", "m_new = m_ij", "the maximum of one tile"
    ),
    Mutation(
        "tl.dot(p.to(v.dtype)",
        "tl.dot(p.to(tl.float16)",
        "weights in float16",
        may_not_compile=True,
    ),
    # The merge of the tile with the state.
    Mutation("alpha = tl.exp(m_i - shift)", "alpha = 1.0", "the state is not rescaled"),
    Mutation(
        "tl.exp(m_i - shift)", "tl.exp(shift - m_i)", "rescaled the wrong way round"
    ),
    Mutation("beta = tl.exp(m_ij - shift)", "beta = 1.0", "the tile is not rescaled"),
    Mutation("l_i = l_i * alpha", "pass", "the old sum is not rescaled"),
    Mutation("l_ij * beta", "l_ij", "the sum of the tile is not rescaled"),
    Mutation("o * l_i[:, None]", "o * alpha[:, None]", "o is not multiplied by l"),
    Mutation("o * l_i[:, None]", "o * (l_i / alpha)[:, None]", "o is not rescaled"),
    Mutation("pv * beta[:, None]", "pv", "the product of the tile is not rescaled"),
    Mutation("tl.where(l_new == 0.0, 1.0, l_new)", "l_new", "0 / 0 in a row of -inf"),
    Mutation(
        "o / tl.where(l_new == 0.0, 1.0, l_new)[:, None]", "o", "o is not normalised"
    ),
    # The state between launches.
    Mutation("l_new, mask", "l_ij, mask", "the sum of one tile is kept"),
    Mutation("m_new, mask", "m_ij, mask", "the maximum of one tile is kept"),
    Mutation("m_new, mask", "m_i, mask", "the maximum is not kept"),
    Mutation("tl.store(o_ptrs, o, mask=mask_m)", "pass", "o is not kept"),
    Mutation(
        "torch.zeros((seq_q, head_dim), dtype=torch.float32",
        "torch.zeros((seq_q, head_dim), dtype=q.dtype",
        "o rounded by each launch",
    ),
    Mutation('float("-inf"), dtype', "0.0, dtype", "a maximum that starts at 0"),
    Mutation("return o.to(q.dtype)\n    # --8<-- [end:host]", "return o\n", "float32"),
    # The loop over the keys.
    Mutation(
        "range(0, seq_k, block_n)",
        "range(0, seq_k // block_n * block_n, block_n)",
        "the last keys dropped",
    ),
    Mutation("range(0, seq_k, block_n)", "range(0, block_n, block_n)", "one block"),
    Mutation(
        "range(0, seq_k, block_n)", "range(0, seq_q, block_n)", "keys up to seq_q"
    ),
]
