"""Tests of snippets/attention/flash2_single_head.py."""

from snippets.attention import flash2_single_head
from tests.mutations import Mutation
from tests.snippets.attention.cases import (
    FINISH_MUTATIONS,
    LAUNCH_MUTATIONS,
    LOOP_MUTATIONS,
    ONLINE_MUTATIONS,
    POINTER_MUTATIONS,
    SingleHeadTests,
    refusal_mutations,
)


class TestFlash2SingleHead(SingleHeadTests):
    attention = staticmethod(flash2_single_head.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 64, "block_n": 16},
        {},
    )


MUTATIONS = [
    *POINTER_MUTATIONS,
    *(m for m in ONLINE_MUTATIONS if "acc * alpha" not in m.old),
    Mutation("tl.fma(acc, alpha[:, None]", "tl.fma(acc, 1.0", "no rescaling of o"),
    Mutation("tl.fma(acc, alpha[:, None], pv)", "pv", "the output of the last tile"),
    *FINISH_MUTATIONS,
    *LOOP_MUTATIONS,
    Mutation(
        "range(0, seq_k, BLOCK_N)", "range(0, seq_q, BLOCK_N)", "keys up to seq_q"
    ),
    Mutation(
        "offs_n = (start_n + tl.arange",
        "offs_n = (start_m + tl.arange",
        "the keys of the query block",
    ),
    Mutation(
        'm_i = tl.full((BLOCK_M,), float("-inf")',
        "m_i = tl.full((BLOCK_M,), 0.0",
        "a maximum that starts at 0",
    ),
    *LAUNCH_MUTATIONS,
    *refusal_mutations(2),
]
